// SPDX-License-Identifier: MIT
#include "daemon/connection_table.hpp"

#include "proto/codec.hpp"

namespace mechad {

ConnectionTable::Seat::Seat(ConnectionTable& table, Connection& connection)
    : table_(table), connection_(connection), place_(table.idle_.end()) {
    ++table_.count_;
}

ConnectionTable::Seat::~Seat() {
    if (set_busy()) --table_.count_;
}

void ConnectionTable::Seat::set_idle() {
    if (is_idle_ || is_dismissed_) return;
    is_idle_ = true;
    place_ = table_.idle_.insert(table_.idle_.end(), this);
}

bool ConnectionTable::Seat::set_busy() {
    if (is_idle_) table_.idle_.erase(place_);
    is_idle_ = false;
    return !is_dismissed_;
}

bool ConnectionTable::make_room() { return count_ < connections_max_ || dismiss_oldest_idle(); }

bool ConnectionTable::dismiss_oldest_idle() {
    if (idle_.empty()) return false;
    Seat& seat = *idle_.front();
    (void)seat.set_busy();
    seat.is_dismissed_ = true;
    --count_;
    seat.connection_.dismiss(encode_error(
        std::nullopt, Error(ErrorKind::overloaded,
                            "too many connections are open, and this one was idle for longest", {},
                            "connect when there is a call to make, and read its answer")));
    return true;
}

}  // namespace mechad
