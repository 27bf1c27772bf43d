// SPDX-License-Identifier: MIT
// Lets one coroutine sleep until something happened or a deadline passed. Not a queue: the
// sleeper looks at the state itself after each wake.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace mechad {

class Wakeup {
public:
    using Time = boost::asio::steady_timer::time_point;

    explicit Wakeup(const boost::asio::any_io_executor& executor) : timer_(executor) {}

    void notify() {
        is_pending_ = true;
        timer_.cancel();
    }
    // Returns at once when notify() came since the last return. One sleeper at a time.
    boost::asio::awaitable<void> wait(Time until = Time::max()) {
        if (!is_pending_) {
            timer_.expires_at(until);
            co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
        }
        is_pending_ = false;
    }

private:
    boost::asio::steady_timer timer_;
    bool is_pending_ = false;
};

}  // namespace mechad
