// SPDX-License-Identifier: MIT
#include "daemon/stream/off_loop.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <future>
#include <stdexcept>

#include "tests/unit/result_printer.hpp"

using namespace mechad;
using namespace std::chrono_literals;

namespace {

// Its answer, once the loop has nothing more to do.
template <class Work>
std::invoke_result_t<Work> run_off_loop(Work work, std::chrono::milliseconds deadline = 60s) {
    // As a daemon's, it outlives every thread.
    static auto& loop = *new boost::asio::io_context(1);
    loop.restart();
    std::optional<std::invoke_result_t<Work>> answer;
    const auto wait = [&]() -> boost::asio::awaitable<void> {
        answer = co_await off_loop(loop.get_executor(), std::move(work), deadline);
        loop.stop();
    };
    boost::asio::co_spawn(loop, wait(), boost::asio::detached);
    const auto guard = boost::asio::make_work_guard(loop);
    loop.run();
    return *std::move(answer);
}

}  // namespace

TEST_CASE("off_loop: the answer comes from another thread") {
    const auto here = std::this_thread::get_id();
    const auto is_elsewhere =
        run_off_loop([here] { return Result<bool>(std::this_thread::get_id() != here); });
    CHECK(is_elsewhere);
    CHECK(*is_elsewhere);
}

TEST_CASE("off_loop: what is thrown becomes an error") {
    const auto answer = run_off_loop([]() -> Result<int> { throw std::runtime_error("no disk"); });
    REQUIRE_FALSE(answer);
    CHECK(answer.error().message() == "no disk");
}

TEST_CASE("off_loop: a deadline is kept, and the late answer touches nothing") {
    std::promise<void> go;
    std::promise<void> gone;
    const auto answer = run_off_loop(
        [wait = go.get_future().share(), &gone]() -> Result<int> {
            wait.wait();
            gone.set_value();
            return 1;
        },
        10ms);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().kind() == ErrorKind::overloaded);
    go.set_value();
    gone.get_future().wait();
}

TEST_CASE("off_loop: a thread that is not to be had is an error") {
    if (::geteuid() == 0) {
        MESSAGE("SKIPPED: needs an ordinary user");
        return;
    }
    struct rlimit before {};
    REQUIRE(::getrlimit(RLIMIT_NPROC, &before) == 0);
    const struct rlimit none { 0, before.rlim_max };
    REQUIRE(::setrlimit(RLIMIT_NPROC, &none) == 0);
    const auto answer = run_off_loop([] { return Result<int>(1); });
    REQUIRE(::setrlimit(RLIMIT_NPROC, &before) == 0);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().kind() == ErrorKind::overloaded);
}
