// SPDX-License-Identifier: MIT
#include "daemon/lifecycle.hpp"

namespace mechad {

void Lifecycle::stop(EndReason reason) {
    if (!stop_reason_ && !main_ended_) stop_reason_ = reason;
}

void Lifecycle::stop_now(EndReason reason) {
    stop(reason);
    without_grace_ = true;
}

// When the tree is to be killed, as far as that is known now.
std::optional<Lifecycle::Time> Lifecycle::kill_time() const {
    if (without_grace_ && terminated_) return terminated_;
    if (terminated_) return *terminated_ + limits_.kill_grace;
    if (main_ended_) return is_output_closed_ ? *main_ended_ : *main_ended_ + limits_.linger;
    return std::nullopt;
}

Lifecycle::Step Lifecycle::kill_step(Time now) {
    if (!tree_killed_) {
        tree_killed_ = now;
        return {Action::kill_tree};
    }
    const Time box_kill = *tree_killed_ + limits_.kill_deadline;
    if (now < box_kill) return {Action::wait, box_kill};
    if (!box_killed_) {
        box_killed_ = now;
        return {Action::kill_box};
    }
    const Time give_up = *box_killed_ + limits_.kill_deadline;
    return now < give_up ? Step{Action::wait, give_up} : Step{Action::finish};
}

Lifecycle::Step Lifecycle::next(Time now) {
    if (is_tree_empty_ || is_box_gone_) return {Action::finish};

    if (limits_.timeout && now >= *started_ + *limits_.timeout) stop(EndReason::timeout);
    if (stop_reason_ && !terminated_) {
        terminated_ = now;
        return {Action::terminate};
    }
    const auto kill = kill_time();
    if (kill && now >= *kill) return kill_step(now);
    if (kill) return {Action::wait, *kill};
    return {Action::wait, limits_.timeout ? *started_ + *limits_.timeout : Time::max()};
}

}  // namespace mechad
