// SPDX-License-Identifier: MIT
#include "daemon/server.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "daemon/log.hpp"
#include "daemon/peer_check.hpp"
#include "daemon/stream/rethrow.hpp"
#include "proto/codec.hpp"

namespace mechad {

namespace asio = boost::asio;
using Acceptor = asio::local::stream_protocol::acceptor;
using Clock = std::chrono::steady_clock;
constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

namespace {

// When descriptors or memory run out: long enough not to spin, short enough to recover unseen.
constexpr std::chrono::milliseconds accept_pause{100};

// For what is read of a peer that is not served.
constexpr std::chrono::seconds refused_deadline{1};

// Beside the runs, for status, list, kill and clients that are about to speak.
constexpr std::size_t spare_connections = 128;

bool is_shortage(const boost::system::error_code& error) {
    namespace errc = boost::system::errc;
    return error == errc::too_many_files_open || error == errc::too_many_files_open_in_system ||
           error == errc::no_buffer_space || error == errc::not_enough_memory;
}

}  // namespace

Server::Server(const asio::any_io_executor& executor, os::UniqueFd listening,
               const SessionServices& services)
    : executor_(executor),
      acceptor_(executor, asio::local::stream_protocol(), listening.release()),
      services_(services),
      connections_(services.runs->runs_max() + spare_connections),
      accepting_ended_(executor),
      last_end_(Clock::now()) {}

asio::awaitable<void> Server::accept_all() {
    asio::steady_timer pause(executor_);
    bool is_short = false;  // of descriptors or memory; logged once per shortage
    is_accepting_ = true;
    while (acceptor_.is_open() && !is_pausing_) {
        auto [error, socket] = co_await acceptor_.async_accept(as_values);
        if (error == asio::error::operation_aborted || (error && !acceptor_.is_open())) break;
        if (is_shortage(error) && connections_.dismiss_oldest_idle()) continue;
        if (error) {
            if (!std::exchange(is_short, true)) {
                log_warning("cannot accept connections for now: " + error.message());
            }
            pause.expires_after(accept_pause);
            co_await pause.async_wait(as_values);
            continue;
        }
        is_short = false;
        start_serving(std::move(socket));
    }
    is_accepting_ = false;
    accepting_ended_.notify();
}

void Server::start_serving(Connection::Socket socket) {
    ++open_count_;
    asio::co_spawn(executor_, serve_one(std::move(socket)),
                   [this](const std::exception_ptr& failure) {
                       --open_count_;
                       last_end_ = Clock::now();
                       rethrow(failure);
                   });
}

std::optional<Clock::time_point> Server::idle_since() const {
    if (open_count_ > 0) return std::nullopt;
    return last_end_;
}

// An accepted connection whose turn has not come yet is in nobody's count: hence the wait.
asio::awaitable<bool> Server::pause_if_idle() {
    boost::system::error_code ignored;
    is_pausing_ = true;
    acceptor_.cancel(ignored);
    while (is_accepting_) co_await accepting_ended_.wait();
    is_pausing_ = false;
    if (open_count_ == 0) co_return true;
    if (acceptor_.is_open()) asio::co_spawn(executor_, accept_all(), rethrow);
    co_return false;
}

asio::awaitable<void> Server::serve_one(Connection::Socket socket) {
    Connection connection(std::move(socket));
    try {
        if (const auto refusal = refuse(connection)) {
            if (services_.preflight->is_probing()) {
                // It may be the probe, which must not get here at all.
                const auto heard = co_await connection.read_line(Clock::now() + refused_deadline);
                services_.preflight->note_received(heard.line);
            }
            connection.dismiss(encode_error(std::nullopt, *refusal));
        } else {
            ConnectionTable::Seat seat(connections_, connection);
            co_await serve(services_, connection, seat);
        }
    } catch (const std::exception& failure) {
        // Memory, or a bug in a library: this session ends, the others go on.
        log_error(std::string("a session ended by an exception: ") + failure.what());
    }
    connection.close();
}

// First who it is: nobody gives way to a peer that is not welcome.
std::optional<Error> Server::refuse(const Connection& connection) {
    auto refusal = refuse_peer(connection.descriptor());
    while (refusal && refusal->kind() == ErrorKind::overloaded &&
           connections_.dismiss_oldest_idle()) {
        refusal = refuse_peer(connection.descriptor());
    }
    if (refusal || connections_.make_room()) return refusal;
    return Error(ErrorKind::overloaded, "too many connections are open, and none of them is idle",
                 {}, "try again when a run ends");
}

void Server::close() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
}

}  // namespace mechad
