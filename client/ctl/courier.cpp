// SPDX-License-Identifier: MIT
#include "client/ctl/courier.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <csignal>
#include <mechad/error.hpp>

namespace mechad::ctl {

namespace {

// A daemon answers at once. One that is stopped for a moment is not to be sent a signal twice.
constexpr std::chrono::seconds answer_wait{2};
constexpr std::chrono::seconds hope_wait{5};

}  // namespace

bool Courier::asks_to_end(int signal) {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

void Courier::send(int signal) {
    if (asks_to_end(signal) && !unheard()) {
        unheard_ = signal;
        is_behind_input_ = false;
        hopeless_at_ = client::in(hope_wait);
    }
    waiting_.push_back(signal);
    if (!call_) send_next();
}

pollfd Courier::wanted() const {
    if (!call_) return {-1, 0, 0};
    return {call_->channel().fd(), call_->channel().wanted_events(), 0};
}

client::Time Courier::wake_time() const {
    return std::min(call_ ? answer_until_ : client::never, unheard_ ? hopeless_at_ : client::never);
}

void Courier::look() {
    if (!call_) return;
    call_->channel().exchange();
    try {
        if (call_->take_answer()) {
            if (unheard_ == waiting_.front()) unheard_.reset();
        } else if (client::has_passed(answer_until_)) {
            queue_behind_input();
        } else {
            return;
        }
    } catch (const client::Error& error) {
        if (error.kind() == client::ErrorKind::no_such_run) {
            unheard_.reset();
        } else {
            queue_behind_input();
        }
    }
    finish();
}

void Courier::finish() {
    call_.reset();
    waiting_.pop_front();
    send_next();
}

void Courier::send_next() {
    while (!waiting_.empty() && !call_) {
        try {
            answer_until_ = client::in(answer_wait);
            call_.emplace(socket_path_, KillParams{run_.run(), waiting_.front()},
                          client::in(std::chrono::milliseconds(0)));
        } catch (const client::Error&) {
            queue_behind_input();
            waiting_.pop_front();
        }
    }
}

// Where nobody answers, or the daemon refuses: a signal that came twice is better than one that did
// not come.
void Courier::queue_behind_input() {
    run_.queue_signal(waiting_.front());
    is_behind_input_ = is_behind_input_ || unheard_ == waiting_.front();
}

std::optional<int> Courier::unheard() {
    int unread_bytes = 0;
    if (unheard_ && is_behind_input_ && run_.channel().unsent_bytes() == 0 &&
        ::ioctl(run_.channel().fd(), SIOCOUTQ, &unread_bytes) == 0 && unread_bytes == 0) {
        unheard_.reset();
    }
    return unheard_;
}

bool Courier::is_hopeless() { return unheard() && client::has_passed(hopeless_at_); }

}  // namespace mechad::ctl
