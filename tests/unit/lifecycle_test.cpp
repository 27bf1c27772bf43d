// SPDX-License-Identifier: MIT
#include "daemon/lifecycle.hpp"

#include <doctest/doctest.h>

using namespace mechad;
using namespace std::chrono_literals;
using Action = Lifecycle::Action;

namespace {

// A run that began at `start`, with round limits.
class PlayedRun {
public:
    explicit PlayedRun(std::optional<Lifecycle::Span> timeout = std::nullopt)
        : life({.kill_grace = 2000ms,
                .timeout = timeout,
                .linger = 100ms,
                .kill_deadline = 5000ms}) {
        life.started(start);
    }
    Lifecycle::Step at(Lifecycle::Span offset) { return life.next(start + offset); }

    const Lifecycle::Time start{1000s};
    Lifecycle life;
};

}  // namespace

TEST_CASE("lifecycle: a command that runs is waited for without limit") {
    PlayedRun run;

    const auto step = run.at(1h);

    CHECK(step.action == Action::wait);
    CHECK(step.until == Lifecycle::Time::max());
}

TEST_CASE("lifecycle: a tree that is empty is the end, whatever else is pending") {
    PlayedRun run;
    run.life.main_ended(run.start + 1s);
    run.life.tree_emptied();

    CHECK(run.at(1s).action == Action::finish);
    CHECK(run.life.is_tree_empty());
    CHECK_FALSE(run.life.stop_reason());
}

TEST_CASE("lifecycle: what still writes after the main process ended has 100 ms") {
    PlayedRun run;
    run.life.main_ended(run.start + 1000ms);

    const auto before = run.at(1050ms);
    CHECK(before.action == Action::wait);
    CHECK(before.until == run.start + 1100ms);
    CHECK(run.at(1100ms).action == Action::kill_tree);
}

TEST_CASE("lifecycle: closed output after the main process ended is not waited for") {
    PlayedRun run;
    run.life.main_ended(run.start + 1000ms);
    run.life.output_closed();

    CHECK(run.at(1000ms).action == Action::kill_tree);
}

TEST_CASE("lifecycle: output closed by a command that goes on does not end it") {
    PlayedRun run;
    run.life.output_closed();

    CHECK(run.at(1h).action == Action::wait);
}

TEST_CASE("lifecycle: a stop is TERM, the grace, KILL, once each") {
    PlayedRun run;
    run.life.stop(EndReason::cancelled);

    CHECK(run.at(0ms).action == Action::terminate);
    const auto grace = run.at(1ms);
    CHECK(grace.action == Action::wait);
    CHECK(grace.until == run.start + 2000ms);
    CHECK(run.at(2000ms).action == Action::kill_tree);
    CHECK(run.at(2001ms).action == Action::wait);
}

TEST_CASE("lifecycle: background processes keep the grace when the main process took its TERM") {
    PlayedRun run;
    run.life.stop(EndReason::cancelled);
    REQUIRE(run.at(0ms).action == Action::terminate);
    run.life.main_ended(run.start + 10ms);
    run.life.output_closed();

    CHECK(run.at(500ms).action == Action::wait);
    CHECK(run.at(2000ms).action == Action::kill_tree);
}

TEST_CASE("lifecycle: a timeout counts from the start and is the reason") {
    PlayedRun run(3000ms);

    const auto before = run.at(2999ms);
    CHECK(before.action == Action::wait);
    CHECK(before.until == run.start + 3000ms);
    CHECK(run.at(3000ms).action == Action::terminate);
    CHECK(run.life.stop_reason() == EndReason::timeout);
}

TEST_CASE("lifecycle: the first reason to stop stays") {
    PlayedRun run;
    run.life.stop(EndReason::output_limit);
    run.life.stop(EndReason::cancelled);

    CHECK(run.life.stop_reason() == EndReason::output_limit);
}

TEST_CASE("lifecycle: a stop after the main process ended changes no verdict") {
    PlayedRun run(3000ms);
    run.life.main_ended(run.start + 1s);
    run.life.stop(EndReason::cancelled);

    (void)run.at(4000ms);
    CHECK_FALSE(run.life.stop_reason());
}

TEST_CASE("lifecycle: a hurried stop leaves out the grace") {
    PlayedRun run;
    run.life.stop_now(EndReason::daemon_stopping);

    CHECK(run.at(0ms).action == Action::terminate);
    CHECK(run.at(0ms).action == Action::kill_tree);
}

TEST_CASE("lifecycle: a keeper that does not answer is killed, and then given up") {
    PlayedRun run;
    run.life.stop_now(EndReason::killed);
    (void)run.at(0ms);
    REQUIRE(run.at(0ms).action == Action::kill_tree);

    CHECK(run.at(4999ms).action == Action::wait);
    CHECK(run.at(5000ms).action == Action::kill_box);
    CHECK(run.at(9999ms).action == Action::wait);
    CHECK(run.at(10000ms).action == Action::finish);
    CHECK_FALSE(run.life.is_tree_empty());
}

TEST_CASE("lifecycle: a box that is gone ends the run without the word that its tree is empty") {
    PlayedRun run;
    run.life.box_gone();

    CHECK(run.at(0ms).action == Action::finish);
    CHECK_FALSE(run.life.is_tree_empty());
}
