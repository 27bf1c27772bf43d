// SPDX-License-Identifier: MIT
// Coroutines that work on the locals of another one: it joins them before its frame goes.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <utility>

#include "daemon/stream/wakeup.hpp"

namespace mechad {

class TaskGroup {
public:
    explicit TaskGroup(const boost::asio::any_io_executor& executor)
        : executor_(executor), ended_(executor) {}

    void start(boost::asio::awaitable<void> task) {
        ++running_;
        boost::asio::co_spawn(executor_, std::move(task),
                              [this](const std::exception_ptr& failure) {
                                  if (failure && !failure_) failure_ = failure;
                                  --running_;
                                  ended_.notify();
                              });
    }
    // Waits for all; the caller has made them end. Passes on the first exception.
    boost::asio::awaitable<void> join() {
        while (running_ > 0) co_await ended_.wait();
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

private:
    boost::asio::any_io_executor executor_;
    Wakeup ended_;
    std::size_t running_ = 0;
    std::exception_ptr failure_;
};

}  // namespace mechad
