// SPDX-License-Identifier: MIT
// The connections that are open: their number against the limit, and which of them gives way when
// there is no room for another.
#pragma once

#include <cstddef>
#include <list>

#include "daemon/stream/connection.hpp"

namespace mechad {

class ConnectionTable {
public:
    explicit ConnectionTable(std::size_t connections_max) : connections_max_(connections_max) {}

    // One connection's place, for as long as it is held. Busy at first.
    class Seat {
    public:
        // Call make_room() before.
        Seat(ConnectionTable& table, Connection& connection);
        ~Seat();
        Seat(const Seat&) = delete;
        Seat& operator=(const Seat&) = delete;

        // No run is under way: from here on the connection may be told to give way and closed.
        void set_idle();
        // False when that has happened; what the client sent is then not to be acted on.
        [[nodiscard]] bool set_busy();

    private:
        friend class ConnectionTable;
        ConnectionTable& table_;
        Connection& connection_;
        std::list<Seat*>::iterator place_;  // in table_.idle_, when idle
        bool is_idle_ = false;
        bool is_dismissed_ = false;
    };

    // Dismisses the oldest idle connection when the table is full. False when none is idle.
    [[nodiscard]] bool make_room();
    // Tells the connection that has been idle for longest that it gives way, and closes it: its
    // descriptor is free at once. One in the midst of an answer is only closed. False when none is
    // idle.
    bool dismiss_oldest_idle();

    std::size_t count() const { return count_; }

private:
    std::size_t connections_max_;
    std::size_t count_ = 0;
    std::list<Seat*> idle_;  // the longest idle first
};

}  // namespace mechad
