// SPDX-License-Identifier: MIT
#include "daemon/stream/output_pump.hpp"

#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>

namespace mechad {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

namespace {

// The capacity of a pipe (pipe(7)): one read empties it.
constexpr std::size_t chunk_bytes = std::size_t{64} << 10;

}  // namespace

OutputPump::OutputPump(const asio::any_io_executor& executor, os::UniqueFd read_end, Target target)
    : pipe_(executor, read_end.release()), target_(std::move(target)), buffer_(chunk_bytes) {}

void OutputPump::keep_tail(std::string_view chunk) {
    if (target_.tail_bytes == 0) return;
    if (chunk.size() > target_.tail_bytes) chunk.remove_prefix(chunk.size() - target_.tail_bytes);
    tail_.append(chunk);
    if (tail_.size() > 2 * target_.tail_bytes) tail_.erase(0, tail_.size() - target_.tail_bytes);
}

std::string_view OutputPump::tail_lines() const {
    std::string_view tail(tail_);
    if (bytes_ <= target_.tail_bytes) return tail;
    tail.remove_prefix(tail.size() - target_.tail_bytes);
    const std::size_t end = tail.find('\n');
    return end == std::string_view::npos ? std::string_view() : tail.substr(end + 1);
}

asio::awaitable<void> OutputPump::deliver(std::string_view chunk) {
    if (target_.limit_bytes) {
        const std::uint64_t before = bytes_ - chunk.size();
        const std::uint64_t room =
            *target_.limit_bytes > before ? *target_.limit_bytes - before : 0;
        if (chunk.size() > room) {
            chunk = chunk.substr(0, room);
            if (!std::exchange(is_truncated_, true) && target_.on_limit) target_.on_limit();
        }
    }
    if (chunk.empty() || is_client_gone_) {
        // Nothing to wait for: let the others have their turn, a full pipe is never empty.
        co_return co_await asio::post(pipe_.get_executor(), asio::use_awaitable);
    }
    const bool delivered = co_await target_.client->output(target_.stream, chunk);
    is_client_gone_ = !delivered;
}

asio::awaitable<void> OutputPump::carry() {
    for (;;) {
        const ssize_t got = ::read(pipe_.native_handle(), buffer_.data(), buffer_.size());
        if (got > 0) {
            const std::string_view chunk(buffer_.data(), static_cast<std::size_t>(got));
            bytes_ += chunk.size();
            keep_tail(chunk);
            co_await deliver(chunk);
            continue;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR) || is_finishing_) break;
        co_await pipe_.async_wait(Descriptor::wait_read, asio::as_tuple(asio::use_awaitable));
    }
    if (!is_client_gone_) (void)co_await target_.client->output_ended(target_.stream);
    is_ended_ = true;
    boost::system::error_code ignored;
    pipe_.close(ignored);
}

void OutputPump::finish() {
    if (is_ended_) return;
    is_finishing_ = true;
    boost::system::error_code ignored;
    pipe_.cancel(ignored);
}

}  // namespace mechad
