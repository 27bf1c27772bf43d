// SPDX-License-Identifier: MIT
// When a run is told to end, is made to end, and has ended: the whole rule as a value that knows
// nothing of processes or clocks. The run feeds it what happened and does what it answers.
#pragma once

#include <chrono>
#include <optional>

#include "proto/messages.hpp"

namespace mechad {

class Lifecycle {
public:
    using Clock = std::chrono::steady_clock;
    using Time = Clock::time_point;
    using Span = std::chrono::milliseconds;

    struct Limits {
        Span kill_grace{2000};        // between TERM and KILL
        std::optional<Span> timeout;  // from exec; no limit when empty
        // After the main process ended, for what still writes to its output. Long enough for a
        // filter that was just forked, on a busy machine; short enough to be "at once" for people.
        Span linger{250};
        // For the tree to be empty after KILL; then the box itself is killed, then given up.
        Span kill_deadline{5000};
    };

    enum class Action {
        wait,       // until Step::until, or something happens
        terminate,  // TERM to the command's process group
        kill_tree,  // KILL to all of it
        kill_box,   // the tree's keeper does not answer: KILL the box from outside
        finish      // over; is_tree_empty() says how
    };
    struct Step {
        Action action = Action::wait;
        Time until = Time::max();
    };

    explicit Lifecycle(Limits limits) : limits_(limits) {}

    void started(Time now) { started_ = now; }
    void main_ended(Time now) {
        if (!main_ended_) main_ended_ = now;
    }
    void output_closed() { is_output_closed_ = true; }  // nobody can write any more
    void tree_emptied() { is_tree_empty_ = true; }
    void box_gone() { is_box_gone_ = true; }  // the keeper died without saying "empty"
    // The first reason stays. After the main process ended there is nothing left to stop, only
    // what it left behind.
    void stop(EndReason reason);
    // As stop, without grace.
    void stop_now(EndReason reason);

    // Each action other than wait and finish is answered once.
    Step next(Time now);

    bool is_started() const { return started_.has_value(); }
    bool is_tree_empty() const { return is_tree_empty_; }
    // Why the run was stopped; empty when the command ended by itself.
    std::optional<EndReason> stop_reason() const { return stop_reason_; }
    Time started_at() const { return *started_; }
    Time ended_at() const { return main_ended_.value_or(*started_); }

private:
    std::optional<Time> kill_time() const;
    Step kill_step(Time now);

    Limits limits_;
    std::optional<Time> started_;
    std::optional<Time> main_ended_;
    std::optional<Time> terminated_;
    std::optional<Time> tree_killed_;
    std::optional<Time> box_killed_;
    std::optional<EndReason> stop_reason_;
    bool is_output_closed_ = false;
    bool is_tree_empty_ = false;
    bool is_box_gone_ = false;
    bool without_grace_ = false;
};

}  // namespace mechad
