// SPDX-License-Identifier: MIT
#include "daemon/preflight/token_listener.hpp"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>

#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace asio = boost::asio;
constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

namespace {

constexpr std::chrono::seconds read_deadline{2};

}  // namespace

TokenListener::TokenListener(const asio::any_io_executor& executor, std::string token)
    : executor_(executor),
      token_(std::move(token)),
      control_token_(os::random_hex(16)),
      acceptor_(executor),
      tasks_(executor),
      heard_(executor) {}

Result<void> TokenListener::listen(const Endpoint& endpoint) {
    boost::system::error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(16, error);
    if (error) return os::os_error("listen for preflight's probes", error.value(), "bind");
    tasks_.start(accept_all());
    return {};
}

TokenListener::Endpoint TokenListener::endpoint() const { return acceptor_.local_endpoint(); }

asio::awaitable<void> TokenListener::accept_all() {
    for (;;) {
        Socket socket(executor_);
        const auto [error] = co_await acceptor_.async_accept(socket, as_values);
        if (error) co_return;
        tasks_.start(read_one(std::move(socket)));
    }
}

asio::awaitable<void> TokenListener::read_one(Socket socket) {
    ++reading_;
    asio::steady_timer deadline(executor_, read_deadline);
    deadline.async_wait([&socket](const auto& error) {
        boost::system::error_code ignored;
        if (!error) socket.cancel(ignored);
    });
    std::string heard;
    std::array<char, 256> buffer;
    while (heard.size() < 4096) {
        const auto [error, got] = co_await socket.async_read_some(asio::buffer(buffer), as_values);
        heard.append(buffer.data(), got);
        if (error) break;
    }
    deadline.cancel();
    // The timer's handler refers to the socket: let it run before both go.
    co_await asio::post(executor_, asio::use_awaitable);
    token_came_ = token_came_ || heard.find(token_) != std::string::npos;
    control_came_ = control_came_ || heard.find(control_token_) != std::string::npos;
    --reading_;
    heard_.notify();
}

asio::awaitable<Result<bool>> TokenListener::take_verdict() {
    control_came_ = false;
    {
        Socket control(executor_);
        const auto [unconnected] = co_await control.async_connect(endpoint(), as_values);
        if (unconnected) {
            co_return os::os_error("reach preflight's own listener", unconnected.value(),
                                   "connect");
        }
        co_await asio::async_write(control, asio::buffer(control_token_), as_values);
    }
    const auto until = std::chrono::steady_clock::now() + 2 * read_deadline;
    while ((!control_came_ || reading_ > 0) && std::chrono::steady_clock::now() < until) {
        co_await heard_.wait(until);
    }
    if (!control_came_) {
        co_return Error(ErrorKind::internal, "preflight's own listener heard nothing");
    }
    co_return std::exchange(token_came_, false);
}

asio::awaitable<void> TokenListener::close() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    co_await tasks_.join();
}

}  // namespace mechad
