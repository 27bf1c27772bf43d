// SPDX-License-Identifier: MIT
// Who gives way when connections are too many.
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <memory>
#include <string>

#include "daemon/connection_table.hpp"
#include "daemon/os/unique_fd.hpp"

using namespace mechad;

namespace {

struct Client {
    Client(boost::asio::io_context& loop, ConnectionTable& table) {
        int fds[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        end = os::UniqueFd(fds[1]);
        connection = std::make_unique<Connection>(
            Connection::Socket(loop.get_executor(), boost::asio::local::stream_protocol(), fds[0]));
        seat = std::make_unique<ConnectionTable::Seat>(table, *connection);
    }

    // What came, with "<end>" when the connection was closed after it.
    std::string read() const {
        std::string text;
        char buffer[4096];
        for (;;) {
            const ssize_t got = ::recv(end.get(), buffer, sizeof buffer, 0);
            if (got < 0) return text;
            if (got == 0) return text + "<end>";
            text.append(buffer, static_cast<std::size_t>(got));
        }
    }
    bool is_dismissed() const {
        const std::string text = read();
        return text.starts_with(R"({"jsonrpc":"2.0","id":null,"error":)") &&
               text.find("overloaded") != std::string::npos && text.ends_with("}\n<end>");
    }

    os::UniqueFd end;
    std::unique_ptr<Connection> connection;
    std::unique_ptr<ConnectionTable::Seat> seat;
};

}  // namespace

TEST_CASE("a table that is full lets the connection go that was idle for longest") {
    boost::asio::io_context loop;
    ConnectionTable table(3);
    Client first(loop, table);
    Client second(loop, table);
    Client third(loop, table);
    CHECK_FALSE(table.make_room());  // all are busy
    for (const Client* client : {&first, &second, &third}) CHECK(client->read().empty());

    second.seat->set_idle();
    first.seat->set_idle();
    CHECK(table.make_room());
    CHECK(second.is_dismissed());
    CHECK(first.read().empty());
    CHECK(table.count() == 2);
    CHECK_FALSE(second.seat->set_busy());
    CHECK(table.make_room());  // there is room already
    CHECK(first.read().empty());
    CHECK(first.seat->set_busy());
    CHECK_FALSE(table.dismiss_oldest_idle());
}

TEST_CASE("who was busy in between is the youngest again") {
    boost::asio::io_context loop;
    ConnectionTable table(2);
    Client first(loop, table);
    Client second(loop, table);
    first.seat->set_idle();
    second.seat->set_idle();
    CHECK(first.seat->set_busy());
    first.seat->set_idle();
    CHECK(table.make_room());
    CHECK(second.is_dismissed());
    CHECK(table.dismiss_oldest_idle());
    CHECK(first.is_dismissed());
    CHECK(table.count() == 0);
}

TEST_CASE("a connection that was told to give way is counted once and stays told") {
    boost::asio::io_context loop;
    ConnectionTable table(2);
    Client stays(loop, table);
    {
        Client client(loop, table);
        client.seat->set_idle();
        CHECK(table.dismiss_oldest_idle());
        client.seat->set_idle();  // as its session may, before it ends
        CHECK_FALSE(table.dismiss_oldest_idle());
        CHECK(table.count() == 1);
    }
    CHECK(table.count() == 1);
    {
        Client client(loop, table);
        client.seat->set_idle();
    }
    CHECK(table.count() == 1);
    CHECK_FALSE(table.dismiss_oldest_idle());
}

TEST_CASE("a connection in the midst of an answer is closed without another word") {
    boost::asio::io_context loop;
    ConnectionTable table(1);
    Client client(loop, table);
    const std::string answer(std::size_t{1} << 20, 'x');
    bool is_written = true;
    client.seat->set_idle();
    boost::asio::co_spawn(loop, client.connection->write(answer),
                          [&](const std::exception_ptr&, bool result) { is_written = result; });
    loop.poll();
    const std::string begun = client.read();
    CHECK(table.make_room());
    loop.restart();
    loop.run();
    CHECK_FALSE(is_written);
    const std::string all = begun + client.read();
    CHECK(all.size() < answer.size());
    CHECK(all == std::string(all.size() - 5, 'x') + "<end>");
}

TEST_CASE("a client that reads nothing does not keep its place") {
    boost::asio::io_context loop;
    ConnectionTable table(1);
    Client client(loop, table);
    const std::string filling(65536, 'x');
    while (::send(client.connection->descriptor(), filling.data(), filling.size(), MSG_DONTWAIT) >
           0) {
    }
    client.seat->set_idle();
    CHECK(table.make_room());
    CHECK(client.read().ends_with("x<end>"));
}
