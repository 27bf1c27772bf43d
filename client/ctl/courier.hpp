// SPDX-License-Identifier: MIT
// Signals on their way to a command, one after the other so that they keep their order. By
// connections of their own: the daemon stops reading that of a run whose command does not read its
// input.
#pragma once

#include <poll.h>

#include <deque>
#include <mechad/time.hpp>
#include <optional>
#include <string>

#include "client/control_call.hpp"
#include "client/run_channel.hpp"

namespace mechad::ctl {

class Courier {
public:
    // Both outlive it.
    Courier(const std::string& socket_path, client::RunChannel& run)
        : socket_path_(socket_path), run_(run) {}

    static bool asks_to_end(int signal);

    void send(int signal);

    // For poll(2), and when to look again although nothing arrives.
    pollfd wanted() const;
    client::Time wake_time() const;
    // What the daemon answered, and what it did not answer in time.
    void look();

    // A signal that asks the command to end, and that the daemon has not even read yet, or has not
    // answered on its own connection.
    std::optional<int> unheard();
    // Whether it has been so for too long.
    bool is_hopeless();

private:
    void send_next();
    void finish();
    void queue_behind_input();

    const std::string& socket_path_;
    client::RunChannel& run_;
    std::deque<int> waiting_;
    std::optional<client::ControlCall> call_;  // of waiting_.front()
    client::Time answer_until_ = client::never;
    std::optional<int> unheard_;
    bool is_behind_input_ = false;  // unheard_, among what run_ sends
    client::Time hopeless_at_ = client::never;
};

}  // namespace mechad::ctl
