// SPDX-License-Identifier: MIT
#include "daemon/stream/connection.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <memory>

#include "proto/messages.hpp"

namespace mechad {

namespace asio = boost::asio;
constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

namespace {

constexpr std::size_t read_bytes = std::size_t{64} << 10;

// Ends what waits on the socket when the time is over. The handler may already be on its way
// when this goes, so that what it touches is shared.
class Deadline {
public:
    Deadline(Connection::Socket& socket, Connection::Time until)
        : socket_(std::make_shared<Connection::Socket*>(&socket)), timer_(socket.get_executor()) {
        if (until == Connection::Time::max()) return;
        timer_.expires_at(until);
        timer_.async_wait([shared = socket_, over = is_over_](const auto& error) {
            if (error || *shared == nullptr) return;
            *over = true;
            boost::system::error_code ignored;
            (*shared)->cancel(ignored);
        });
    }
    ~Deadline() { *socket_ = nullptr; }
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;
    bool is_over() const { return *is_over_; }

private:
    std::shared_ptr<Connection::Socket*> socket_;
    std::shared_ptr<bool> is_over_ = std::make_shared<bool>(false);
    asio::steady_timer timer_;
};

}  // namespace

Connection::Connection(Socket socket)
    : socket_(std::move(socket)), write_turn_(socket_.get_executor()) {
    write_turn_.expires_at(Time::max());
}

std::optional<std::string> Connection::take_line() {
    const std::size_t end = inbox_.find('\n', scanned_);
    if (end == std::string::npos) {
        scanned_ = inbox_.size();
        return std::nullopt;
    }
    std::string line = inbox_.substr(0, end);
    inbox_.erase(0, end + 1);
    scanned_ = 0;
    return line;
}

asio::awaitable<ReadLine> Connection::read_line(Time until) {
    Deadline deadline(socket_, until);
    for (;;) {
        if (auto line = take_line()) {
            if (line->size() > request_line_bytes_max) co_return ReadLine{ReadEnd::too_long, {}};
            co_return ReadLine{ReadEnd::line, std::move(*line)};
        }
        if (inbox_.size() > request_line_bytes_max) co_return ReadLine{ReadEnd::too_long, {}};
        if (!is_watching_) co_return ReadLine{ReadEnd::closed, {}};

        const std::size_t had = inbox_.size();
        inbox_.resize(had + read_bytes);
        const auto [error, got] = co_await socket_.async_read_some(
            asio::buffer(inbox_.data() + had, read_bytes), as_values);
        inbox_.resize(had + got);
        if (!error) continue;
        if (deadline.is_over()) co_return ReadLine{ReadEnd::timed_out, {}};
        if (error == asio::error::operation_aborted) continue;
        if (error != asio::error::eof || is_hung_up()) co_return ReadLine{ReadEnd::closed, {}};
        scanned_ = 0;
        co_return ReadLine{ReadEnd::half_closed, std::exchange(inbox_, {})};
    }
}

asio::awaitable<bool> Connection::write(std::string_view lines) {
    while (is_writing_) co_await write_turn_.async_wait(as_values);
    // Asio 1.81 does not try a send after one that failed: it would wait for ever.
    if (is_broken_) co_return false;
    is_writing_ = true;
    const auto [error, written] =
        co_await asio::async_write(socket_, asio::buffer(lines.data(), lines.size()), as_values);
    is_writing_ = false;
    is_broken_ = is_broken_ || error;
    write_turn_.cancel_one();
    co_return !error;
}

asio::awaitable<void> Connection::wait_hangup() {
    while (is_watching_ && !is_hung_up()) {
        // Woken by EPOLLHUP and EPOLLERR, which a Unix socket raises when its peer closed both
        // directions, however much is still unread.
        co_await socket_.async_wait(Socket::wait_error, as_values);
    }
}

void Connection::stop_watching() {
    is_watching_ = false;
    boost::system::error_code ignored;
    socket_.cancel(ignored);
}

bool Connection::is_hung_up() const {
    pollfd state{descriptor(), 0, 0};
    return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

int Connection::descriptor() const { return const_cast<Socket&>(socket_).native_handle(); }

void Connection::dismiss(std::string_view last_line) {
    is_watching_ = false;
    is_broken_ = true;
    if (!is_writing_) {
        (void)::send(descriptor(), last_line.data(), last_line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    close();
}

void Connection::close() {
    boost::system::error_code ignored;
    socket_.close(ignored);
}

}  // namespace mechad
