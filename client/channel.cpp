// SPDX-License-Identifier: MIT
#include "client/channel.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

namespace mechad::client {

namespace {

constexpr std::size_t read_bytes = std::size_t{64} << 10;

// Of read_bytes each: more than net.core.wmem_default lets a Unix socket hold.
constexpr int late_turns_max = 16;

}  // namespace

int wait_ms(Time until) {
    if (until == never) return -1;
    const Time now = std::chrono::steady_clock::now();
    if (until <= now) return 0;  // also what lies so far back that its distance has no number
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
    return static_cast<int>(std::min<std::int64_t>(left.count(), std::numeric_limits<int>::max()));
}

bool Turns::take() {
    if (!has_passed(until_)) return true;
    return late_count_++ < late_turns_max;
}

void Channel::send(std::string_view lines) {
    outbox_ += lines;
    flush();
}

short Channel::wanted_events() const {
    const bool wants_to_send = unsent_bytes() > 0 && !is_send_over_;
    return static_cast<short>(wants_to_send ? POLLIN | POLLOUT : POLLIN);
}

bool Channel::wait(Time until) {
    if (is_receive_over_) return true;
    pollfd state{socket_.get(), wanted_events(), 0};
    int ready = 0;
    do {
        ready = ::poll(&state, 1, wait_ms(until));
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) return false;
    exchange();
    return true;
}

void Channel::exchange() {
    flush();
    receive_some();
}

void Channel::flush() {
    while (unsent_bytes() > 0 && !is_send_over_) {
        const ssize_t sent = ::send(socket_.get(), outbox_.data() + sent_, unsent_bytes(),
                                    MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            sent_ += static_cast<std::size_t>(sent);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            // A refusal may be on its way although the rest of what we said was not read.
            is_send_over_ = true;
        }
    }
    if (unsent_bytes() == 0) {
        outbox_.clear();
        sent_ = 0;
    }
}

void Channel::receive_some() {
    if (is_receive_over_) return;
    inbox_.erase(0, taken_);
    scanned_ -= taken_;
    taken_ = 0;
    std::array<char, read_bytes> buffer;
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) {
        inbox_.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        is_receive_over_ = true;
    }
}

std::optional<std::string_view> Channel::take_line() {
    const std::size_t end = inbox_.find('\n', scanned_);
    if (end == std::string::npos) {
        scanned_ = inbox_.size();
        return std::nullopt;
    }
    const auto line = std::string_view(inbox_).substr(taken_, end - taken_);
    taken_ = scanned_ = end + 1;
    return line;
}

}  // namespace mechad::client
