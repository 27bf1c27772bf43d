// SPDX-License-Identifier: MIT
// One connection to the daemon, as lines. Never waits to send while there is something to receive:
// the daemon may wait for us to take output before it takes more input.
#pragma once

#include <cstddef>
#include <mechad/time.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/os/unique_fd.hpp"

namespace mechad::client {

// For poll(2); rounded up, so that a wait never ends early and spins.
int wait_ms(Time until);

// How often a loop that waits goes round: until the time has passed, however much arrives, and then
// as often as takes what a socket may have held at that moment.
class Turns {
public:
    explicit Turns(Time until) : until_(until) {}
    // Whether there is another one.
    bool take();

private:
    Time until_;
    int late_count_ = 0;
};

class Channel {
public:
    // Beyond any answer of a daemon: what is longer is not protocol v1.
    static constexpr std::size_t line_bytes_max = std::size_t{64} << 20;

    // `socket` does not block.
    explicit Channel(os::UniqueFd socket) : socket_(std::move(socket)) {}

    // Takes whole lines with their LF, and sends what goes at once.
    void send(std::string_view lines);

    // Waits for the socket until `until`, then sends and receives what goes at once. False when
    // the time passed first.
    bool wait(Time until);

    // The next line without its LF, valid until the next call of wait() or exchange().
    std::optional<std::string_view> take_line();

    // Sends and receives what goes at once; flush() only sends.
    void exchange();
    void flush();

    int fd() const { return socket_.get(); }
    short wanted_events() const;
    // Lines that can be sent no more count as well.
    std::size_t unsent_bytes() const { return outbox_.size() - sent_; }
    std::size_t waiting_bytes() const { return inbox_.size() - taken_; }
    // Whether the daemon takes no more, and whether nothing more will come from it.
    bool is_send_over() const { return is_send_over_; }
    bool is_receive_over() const { return is_receive_over_; }

private:
    void receive_some();

    os::UniqueFd socket_;
    std::string outbox_;
    std::size_t sent_ = 0;  // of outbox_
    std::string inbox_;
    std::size_t taken_ = 0;    // of inbox_
    std::size_t scanned_ = 0;  // of inbox_, for a LF
    bool is_send_over_ = false;
    bool is_receive_over_ = false;
};

}  // namespace mechad::client
