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
#include <thread>
#include <type_traits>
#include <utility>

namespace mechad {

// The result of `work`, or nothing when the deadline passed first: the thread then goes on alone
// (a hanging file system cannot be interrupted) and its result is destroyed there. `work` owns
// all it touches and throws nothing.
template <class Work>
boost::asio::awaitable<std::optional<std::invoke_result_t<Work>>> off_loop(
    boost::asio::any_io_executor executor, Work work, std::chrono::milliseconds deadline) {
    using Answer = std::optional<std::invoke_result_t<Work>>;
    struct Shared {
        explicit Shared(const boost::asio::any_io_executor& loop) : done(loop) {}
        boost::asio::steady_timer done;
        Answer answer;  // of the loop's thread
    };
    const auto shared = std::make_shared<Shared>(executor);
    shared->done.expires_after(deadline);
    std::thread([executor, weak = std::weak_ptr<Shared>(shared), task = std::move(work)]() mutable {
        auto answer = std::make_shared<Answer>(task());
        boost::asio::post(executor, [weak, answer] {
            const auto waiting = weak.lock();
            if (!waiting) return;
            waiting->answer = std::move(*answer);
            waiting->done.cancel();
        });
    }).detach();
    co_await shared->done.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    co_return std::move(shared->answer);
}

}  // namespace mechad
