// SPDX-License-Identifier: MIT
#include "daemon/stream/stdin_feed.hpp"

#include <unistd.h>

#include <cerrno>

namespace mechad {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

StdinFeed::StdinFeed(const asio::any_io_executor& executor, os::UniqueFd write_end)
    : pipe_(executor, write_end.release()), filled_(executor), drained_(executor) {}

void StdinFeed::push(std::string_view bytes) {
    if (is_closed_ || is_ended_) return;
    backlog_.append(bytes);
    filled_.notify();
}

void StdinFeed::end() {
    is_ended_ = true;
    filled_.notify();
}

asio::awaitable<void> StdinFeed::wait_room() {
    while (!is_closed_ && backlog_.size() - written_ > backlog_bytes_max) {
        co_await drained_.wait();
    }
}

asio::awaitable<void> StdinFeed::carry() {
    while (!is_closed_) {
        if (written_ == backlog_.size()) {
            backlog_.clear();
            written_ = 0;
            if (is_ended_) break;
            co_await filled_.wait();
            continue;
        }
        const ssize_t wrote =
            ::write(pipe_.native_handle(), backlog_.data() + written_, backlog_.size() - written_);
        if (wrote > 0) {
            written_ += static_cast<std::size_t>(wrote);
            if (written_ >= backlog_bytes_max) backlog_.erase(0, std::exchange(written_, 0));
            drained_.notify();
        } else if (errno == EAGAIN || errno == EINTR) {
            co_await pipe_.async_wait(Descriptor::wait_write, asio::as_tuple(asio::use_awaitable));
        } else {
            break;  // EPIPE: the command closed its stdin
        }
    }
    stop();
    boost::system::error_code ignored;
    pipe_.close(ignored);
}

void StdinFeed::stop() {
    is_closed_ = true;
    backlog_.clear();
    written_ = 0;
    boost::system::error_code ignored;
    pipe_.cancel(ignored);
    filled_.notify();
    drained_.notify();
}

}  // namespace mechad
