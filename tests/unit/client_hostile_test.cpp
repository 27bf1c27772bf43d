// SPDX-License-Identifier: MIT
// The library against a server that answers wrongly, too much, or not at all.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/un.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <mechad/client.hpp>
#include <thread>

#include "tests/unit/client_fixture.hpp"
#include "tests/unit/temp_tree.hpp"

using namespace mechad;
using client::Executed;
using Kind = client::ErrorKind;
using std::chrono::milliseconds;

namespace {

constexpr std::string_view notification_line = "{\"jsonrpc\":\"2.0\",\"method\":\"novelty\"}\n";
constexpr auto patience = std::chrono::seconds(10);

// A socket on which the test plays the daemon.
class PlayedDaemon {
public:
    PlayedDaemon() : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        REQUIRE(path().size() < sizeof address.sun_path);
        path().copy(address.sun_path, path().size());
        REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address),
                       sizeof address) == 0);
        REQUIRE(::listen(listener_.get(), 8) == 0);
    }
    std::string path() const { return tree_ / "sock"; }

    // Waits for a client; its connection does not block.
    os::UniqueFd accept() const {
        return os::UniqueFd(
            ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    }

private:
    TempTree tree_;
    os::UniqueFd listener_;
};

// Says `line` for ever on the connection that comes first, reading nothing.
class Flood {
public:
    Flood(const PlayedDaemon& daemon, std::string_view first, std::string_view line)
        : thread_([this, &daemon, first, line] { pour(daemon, first, line); }) {}
    ~Flood() {
        is_over_ = true;
        thread_.join();
    }
    Flood(const Flood&) = delete;
    Flood& operator=(const Flood&) = delete;

private:
    void pour(const PlayedDaemon& daemon, std::string_view first, std::string_view line) {
        const os::UniqueFd end = daemon.accept();
        std::string bytes(first);
        for (int i = 0; i < 500; ++i) bytes += line;
        for (std::size_t sent = 0; !is_over_;) {
            pollfd state{end.get(), POLLOUT, 0};
            if (::poll(&state, 1, 20) <= 0) continue;
            const ssize_t got =
                ::send(end.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
            if (got < 0 && errno != EAGAIN) return;
            if (got > 0) sent += static_cast<std::size_t>(got);
            if (sent == bytes.size()) sent = first.size();
        }
    }

    std::atomic<bool> is_over_ = false;
    std::thread thread_;
};

client::SpawnRequest streamed() {
    return {.argv = {"cat"}, .workspace = "/w", .input = client::StreamedInput{}};
}

client::SpawnRequest large() {
    return {.argv = {"echo", std::string(std::size_t{8} << 20, 'x')}, .workspace = "/w"};
}

// A run that has started, and the daemon's end of it.
struct StartedRun {
    StartedRun() : run(client::Client(daemon.path()).spawn(streamed())), end(daemon.accept()) {
        say(end, started_line);
        REQUIRE(run.wait_started(client::in(patience)) != nullptr);
        REQUIRE(run.next().has_value());
    }
    PlayedDaemon daemon;
    client::Run run;
    os::UniqueFd end;
};

}  // namespace

TEST_CASE("client hostile: an end of input that was not sent does not deny the command") {
    const PlayedDaemon daemon;
    client::Run run = client::Client(daemon.path()).spawn(streamed());
    {
        const os::UniqueFd end = daemon.accept();
        CHECK(hear(end).find("\"spawn\"") != std::string::npos);
    }

    run.close_stdin();
    const auto error = error_of([&] { (void)run.next(client::in(patience)); });

    CHECK(error.kind() == Kind::connection_lost);
    CHECK(error.executed() == Executed::unknown);
}

TEST_CASE("client hostile: the end of an input that was closed early follows the start") {
    const PlayedDaemon daemon;
    client::Run run = client::Client(daemon.path()).spawn(streamed());
    const os::UniqueFd end = daemon.accept();
    run.close_stdin();
    CHECK(hear(end).find("eof") == std::string::npos);

    say(end, started_line);
    REQUIRE(run.wait_started(client::in(patience)) != nullptr);

    CHECK(hear(end).find("eof") != std::string::npos);
}

TEST_CASE("client hostile: an error that is not about the request does not deny the command") {
    const PlayedDaemon daemon;
    client::Run run = client::Client(daemon.path()).spawn(streamed());
    const os::UniqueFd end = daemon.accept();
    Kind kind = Kind::bad_answer;
    SUBCASE("of another call") {
        say(end, R"({"jsonrpc":"2.0","id":99,"error":{"code":-32017,"message":"Full. Nothing was )"
                 R"(executed.","data":{"kind":"overloaded","executed":false}}})"
                 "\n");
    }
    SUBCASE("of another call, by a string") {
        say(end, R"({"jsonrpc":"2.0","id":"1","error":{"code":-32017,"message":"Full.",)"
                 R"("data":{"kind":"overloaded","executed":false}}})"
                 "\n");
    }
    SUBCASE("null") { say(end, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":null}\n"); }
    SUBCASE("empty") { say(end, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}\n"); }
    SUBCASE("a number") { say(end, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":5}\n"); }
    SUBCASE("without a word on the command") {
        kind = Kind::overloaded;
        say(end, R"({"jsonrpc":"2.0","id":1,"error":{"code":-32017,"message":"Full. Nothing was )"
                 R"(executed.","data":{"kind":"overloaded"}}})"
                 "\n");
    }

    const auto error = error_of([&] { (void)run.next(client::in(patience)); });

    CHECK(error.kind() == kind);
    CHECK(error.executed() == Executed::unknown);
    const std::string text = error.what();
    CHECK(text.find("Nothing was executed") == std::string::npos);
    CHECK(text.ends_with("; whether the command ran is unknown"));
}

TEST_CASE("client hostile: an error after the start says that the command was started") {
    StartedRun started;

    say(started.end, R"({"jsonrpc":"2.0","id":1,"error":{"code":-32013,"message":"boo. Nothing )"
                     R"(was executed. ","data":{"kind":"exec_not_found","executed":false}}})"
                     "\n");

    const auto error = error_of([&] { (void)started.run.next(client::in(patience)); });
    CHECK(error.executed() == Executed::yes);
    CHECK(std::string(error.what()) == "boo; the command was started, and how it ended is unknown");
}

TEST_CASE("client hostile: a refused signal does not deny the command") {
    StartedRun started;
    std::thread refusing([&] {
        const os::UniqueFd call = started.daemon.accept();
        const std::string_view line =
            R"({"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"No. Nothing was )"
            R"(executed.","data":{"kind":"invalid_request","executed":false}}})"
            "\n";
        (void)::send(call.get(), line.data(), line.size(), MSG_NOSIGNAL);
    });

    const auto error = error_of([&] { (void)started.run.send_signal(0, client::in(patience)); });
    refusing.join();

    CHECK(error.kind() == Kind::invalid_request);
    CHECK(error.executed() == Executed::yes);
    CHECK(std::string(error.what()) == "No.");
    CHECK_FALSE(started.run.is_over());
}

TEST_CASE("client hostile: no deadline waits for the end of what keeps arriving") {
    const PlayedDaemon daemon;
    const client::Client mechad(daemon.path());
    const auto begin = std::chrono::steady_clock::now();
    SUBCASE("an answer") {
        const Flood flood(daemon, "", notification_line);
        CHECK(error_of([&] { (void)mechad.status(client::in(milliseconds(200))); }).kind() ==
              Kind::deadline);
    }
    SUBCASE("an event") {
        client::Run run = mechad.spawn(streamed());
        const Flood flood(daemon, "", notification_line);
        CHECK_FALSE(run.next(client::in(milliseconds(200))).has_value());
    }
    SUBCASE("an event, when the time has passed already") {
        client::Run run = mechad.spawn(streamed());
        const Flood flood(daemon, "", notification_line);
        CHECK_FALSE(run.next(client::Time::min()).has_value());
    }
    SUBCASE("the end") {
        client::Run run = mechad.spawn(streamed());
        const Flood flood(daemon, started_line, output_line);
        const auto slowly = [](const client::Event&) { ::poll(nullptr, 0, 20); };
        CHECK_FALSE(run.relay(slowly, client::in(milliseconds(200))));
    }
    SUBCASE("the end, gathered") {
        const Flood flood(daemon, started_line, output_line);
        const client::SpawnRequest request{.argv = {"yes"}, .workspace = "/w"};
        const auto error =
            error_of([&] { (void)mechad.run(request, {.until = client::in(milliseconds(200))}); });
        CHECK(error.kind() == Kind::deadline);
        CHECK(error.executed() == Executed::yes);
    }
    SUBCASE("the asking") {
        const Flood flood(daemon, "", notification_line);
        const auto error =
            error_of([&] { (void)mechad.spawn(large(), client::in(milliseconds(1))); });
        CHECK(error.kind() == Kind::deadline);
        CHECK(error.executed() == Executed::no);
    }
    CHECK(std::chrono::steady_clock::now() - begin < patience / 2);
}

TEST_CASE("client hostile: what arrives before the request is sent is bounded") {
    const PlayedDaemon daemon;
    const Flood flood(daemon, "", notification_line);

    const auto error =
        error_of([&] { (void)client::Client(daemon.path()).spawn(large(), client::in(patience)); });

    CHECK(error.kind() == Kind::bad_answer);
    CHECK(error.executed() == Executed::no);
}

TEST_CASE("client hostile: every call after a lost connection tells of it") {
    StartedRun started;
    started.end.reset();
    client::Run& run = started.run;

    const auto first = error_of([&] { (void)run.next(client::in(patience)); });

    REQUIRE(first.kind() == Kind::connection_lost);
    for (const auto& again :
         {error_of([&] { (void)run.next(); }), error_of([&] { (void)run.send_signal(SIGINT); }),
          error_of([&] { (void)run.write_stdin("x"); }), error_of([&] { run.close_stdin(); })}) {
        CHECK(again.kind() == first.kind());
        CHECK(std::string(again.what()) == first.what());
    }
    CHECK(run.is_over());
}

TEST_CASE("client hostile: a kill that is answered of another run is not believed") {
    const PlayedDaemon daemon;
    std::thread answering([&] {
        const os::UniqueFd call = daemon.accept();
        const std::string_view line =
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"run\":\"r2\"}}\n";
        (void)::send(call.get(), line.data(), line.size(), MSG_NOSIGNAL);
    });

    const auto error =
        error_of([&] { client::Client(daemon.path()).kill("r1", {}, client::in(patience)); });
    answering.join();

    CHECK(error.kind() == Kind::bad_answer);
    CHECK(error.executed() == Executed::unknown);
}
