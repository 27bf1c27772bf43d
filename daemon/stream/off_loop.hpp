// SPDX-License-Identifier: MIT
// Work that may block, on a thread of its own, so that the event loop goes on. Not for anything
// that starts processes (see launch/spawn.hpp).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "proto/result.hpp"

namespace mechad {

// The result of `work`, a Result<T>. An error of kind overloaded: there was no thread for it, or
// the deadline passed first; the thread then goes on alone (a hanging file system cannot be
// interrupted) and its result is destroyed there. `work` owns all it touches; what it throws
// becomes an error.
template <class Work>
boost::asio::awaitable<std::invoke_result_t<Work>> off_loop(boost::asio::any_io_executor executor,
                                                            Work work,
                                                            std::chrono::milliseconds deadline) {
    using Answer = std::invoke_result_t<Work>;
    struct Shared {
        explicit Shared(const boost::asio::any_io_executor& loop) : done(loop) {}
        boost::asio::steady_timer done;
        std::optional<Answer> answer;  // of the loop's thread
    };
    const auto shared = std::make_shared<Shared>(executor);
    shared->done.expires_after(deadline);
    auto run = [executor, weak = std::weak_ptr<Shared>(shared), task = std::move(work)]() mutable {
        auto answer = std::make_shared<std::optional<Answer>>();
        try {
            answer->emplace(task());
        } catch (const std::exception& failure) {
            answer->emplace(Error(ErrorKind::internal, failure.what()));
        }
        boost::asio::post(executor, [weak, answer] {
            const auto waiting = weak.lock();
            if (!waiting) return;
            waiting->answer = std::move(*answer);
            waiting->done.cancel();
        });
    };
    try {
        std::thread(std::move(run)).detach();
    } catch (const std::system_error& failure) {
        co_return Error(ErrorKind::overloaded,
                        std::string("there is no thread to be had: ") + failure.what());
    }
    co_await shared->done.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    if (shared->answer) co_return *std::move(shared->answer);
    co_return Error(ErrorKind::overloaded,
                    "it did not end within " + std::to_string(deadline.count()) + " ms");
}

}  // namespace mechad
