// SPDX-License-Identifier: MIT
#include "daemon/run_table.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <optional>

#include "tests/unit/result_printer.hpp"

using namespace mechad;

namespace {

os::FileId file(ino_t inode) { return {1, inode}; }

// A directory of that inode below the others, up to a common root.
Footprint below(ino_t inode, std::vector<ino_t> ancestors) {
    Footprint footprint{.workspace = file(inode), .lineage = {file(inode)}};
    for (const ino_t ancestor : ancestors) footprint.lineage.push_back(file(ancestor));
    footprint.lineage.push_back(file(2));
    return footprint;
}

const SharedGround nothing_shared;

os::Location at(std::string path, dev_t device = 1) { return {device, std::move(path), "ext4"}; }

RunTable make_table() { return RunTable(8, nothing_shared); }

}  // namespace

TEST_CASE("run table: two workspaces overlap when one holds the other, either way round") {
    const auto outer = below(10, {});
    const auto inner = below(11, {10});
    const auto other = below(12, {});

    CHECK(is_overlapping(outer, inner, {}));
    CHECK(is_overlapping(inner, outer, {}));
    CHECK(is_overlapping(outer, outer, {}));
    CHECK_FALSE(is_overlapping(outer, other, {}));
    CHECK_FALSE(is_overlapping(inner, other, {}));
}

TEST_CASE("run table: workspaces of one file system overlap whatever mounts show them") {
    auto whole = below(10, {});
    auto alias = below(11, {});
    whole.grounds = {at("/home/u/proj")};
    alias.grounds = {at("/home/u/proj/sub")};
    CHECK(is_overlapping(whole, alias, {}));
    CHECK(is_overlapping(alias, whole, {}));

    alias.grounds = {at("/home/u/proj2")};
    CHECK_FALSE(is_overlapping(whole, alias, {}));
    alias.grounds = {at("/home/u/proj/sub", 7)};
    CHECK_FALSE(is_overlapping(whole, alias, {}));
}

TEST_CASE("run table: a workspace below what every run can read overlaps with all") {
    const SharedGround ground{.roots = {file(50)}, .grounds = {}};

    CHECK(is_overlapping(below(10, {}), below(51, {50}), ground));
    CHECK_FALSE(is_overlapping(below(51, {50}), below(10, {}), ground));
}

TEST_CASE("run table: a writable entry joins all runs") {
    SharedGround ground;
    ground.has_writable = true;

    CHECK(is_overlapping(below(10, {}), below(12, {}), ground));
}

TEST_CASE("run table: what is mounted below a workspace belongs to it") {
    auto holder = below(10, {});
    auto other = below(11, {});
    holder.grounds = {at("/srv/w"), at("/home/u/proj", 7)};
    other.grounds = {at("/home/u/proj/sub", 7)};
    CHECK(is_overlapping(holder, other, {}));
    CHECK(is_overlapping(other, holder, {}));

    other.grounds = {at("/home/u/proj2", 7)};
    CHECK_FALSE(is_overlapping(holder, other, {}));
}

TEST_CASE("run table: what cannot be told to lie anywhere overlaps with all") {
    auto lost = below(10, {});
    lost.is_lost = true;
    SharedGround lost_ground;
    lost_ground.is_lost = true;

    CHECK(is_overlapping(lost, below(12, {}), {}));
    CHECK(is_overlapping(below(12, {}), lost, {}));
    CHECK(is_overlapping(below(10, {}), below(12, {}), lost_ground));
}

TEST_CASE("run table: a closed run beside an open one that overlaps is told chosen") {
    auto table = make_table();
    const auto open = table.enter("open", "/w", below(10, {}), false);
    REQUIRE(open);

    const auto closed = table.enter("closed", "/w/sub", below(11, {10}), true);
    const auto apart = table.enter("apart", "/x", below(12, {}), true);

    REQUIRE(closed);
    REQUIRE(apart);
    CHECK((*closed)->egress == Egress::chosen);
    CHECK((*apart)->egress == Egress::none);
}

TEST_CASE("run table: an open run lowers the closed ones it overlaps, by name, and no others") {
    auto table = make_table();
    auto closed = table.enter("closed", "/w", below(10, {}), true);
    auto apart = table.enter("apart", "/x", below(12, {}), true);
    REQUIRE(closed);
    REQUIRE(apart);
    int closed_lowered = 0;
    int apart_lowered = 0;
    (*closed)->lower = [&] { ++closed_lowered; };
    (*apart)->lower = [&] { ++apart_lowered; };

    const auto open = table.enter("open", "/w", below(10, {}), false);
    const auto second = table.enter("open", "/w", below(10, {}), false);

    REQUIRE(open);
    REQUIRE(second);
    CHECK((*closed)->lowered_because.find((*open)->id) != std::string::npos);
    CHECK((*closed)->egress == Egress::chosen);
    CHECK(closed_lowered == 1);
    CHECK((*apart)->egress == Egress::none);
    CHECK(apart_lowered == 0);
}

TEST_CASE("run table: closed runs pass on what they read, whoever comes last") {
    // The open run and the last one are two closed ones apart.
    std::array places = {below(10, {}), below(11, {}), below(12, {}), below(13, {})};
    places[0].grounds = {at("/a")};
    places[1].grounds = {at("/b"), at("/a/in")};
    places[2].grounds = {at("/c"), at("/b/in")};
    places[3].grounds = {at("/c/in")};
    std::array<std::size_t, 4> order = {0, 1, 2, 3};
    do {
        auto table = make_table();
        std::array<std::optional<RunTable::Ticket>, 4> runs;
        for (const std::size_t i : order) {
            auto entered = table.enter("", "/w", places[i], i != 0);
            REQUIRE(entered);
            runs[i].emplace(*std::move(entered));
        }
        const auto apart = table.enter("", "/x", below(14, {}), true);
        REQUIRE(apart);
        for (const auto& run : runs) CHECK((*run)->egress == Egress::chosen);
        CHECK((*runs[3])->lowered_because.find((*runs[0])->id) == std::string::npos);
        CHECK((*runs[3])->lowered_because.find((*runs[2])->id) != std::string::npos);
        CHECK((*apart)->egress == Egress::none);
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("run table: a run that was lowered by one that ended passes nothing on any more") {
    auto table = make_table();
    auto between = table.enter("", "/w", below(10, {}), true);
    REQUIRE(between);
    { const auto open = table.enter("", "/w/a", below(11, {10}), false); }
    REQUIRE((*between)->egress == Egress::chosen);

    const auto writer = table.enter("", "/w/b", below(12, {10}), true);

    REQUIRE(writer);
    CHECK((*writer)->egress == Egress::none);
}

TEST_CASE("run table: places are found again when somebody could read for somebody") {
    auto table = make_table();
    auto place = below(11, {10});
    int looks = 0;
    const auto locate = [&](Footprint& footprint) {
        ++looks;
        footprint = place;
    };
    const auto closed = table.enter("", "/w", place, true, locate);
    const auto second = table.enter("", "/x", below(13, {}), true);
    REQUIRE(closed);
    REQUIRE(second);
    CHECK(looks == 0);
    place = below(11, {12});

    const auto open = table.enter("", "/y", below(12, {}), false);

    REQUIRE(open);
    CHECK(looks == 1);
    CHECK((*closed)->egress == Egress::chosen);
    CHECK((*second)->egress == Egress::none);
}

TEST_CASE("run table: what a closed run would be told can be asked without a place for it") {
    auto table = make_table();
    const auto question = below(10, {});
    CHECK(table.find_lowering(question) == std::nullopt);
    const auto open = table.enter("open", "/w/sub", below(11, {10}), false);
    REQUIRE(open);

    const auto answer = table.find_lowering(question);
    const auto closed = table.enter("closed", "/w", question, true);

    REQUIRE(answer);
    CHECK(answer->find((*open)->id) != std::string::npos);
    REQUIRE(closed);
    CHECK((*closed)->lowered_because == *answer);
    CHECK(table.find_lowering(below(12, {})) == std::nullopt);
}

TEST_CASE("run table: a closed run that something outside exposes is told so when it is alone") {
    auto table = make_table();
    auto exposed = below(10, {});
    exposed.exposure = "somebody listens";

    const auto closed = table.enter("closed", "/w", exposed, true);

    CHECK(table.find_lowering(exposed) == "somebody listens");
    REQUIRE(closed);
    CHECK((*closed)->egress == Egress::chosen);
    CHECK((*closed)->lowered_because == "somebody listens");
}

TEST_CASE("run table: a readable entry that shows a part of a workspace by an alias overlaps") {
    auto closed = below(10, {});
    closed.grounds = {at("/srv/w")};
    const SharedGround part{.roots = {file(50)}, .grounds = {at("/srv/w/sub")}};
    const SharedGround apart{.roots = {file(50)}, .grounds = {at("/srv/w2")}};
    const SharedGround elsewhere{.roots = {file(50)}, .grounds = {at("/srv/w/sub", 7)}};

    CHECK(is_overlapping(below(12, {}), closed, part));
    CHECK_FALSE(is_overlapping(below(12, {}), closed, apart));
    CHECK_FALSE(is_overlapping(below(12, {}), closed, elsewhere));
}

TEST_CASE("run table: an open run that ended lowers nothing that comes after it") {
    auto table = make_table();
    { const auto open = table.enter("open", "/w", below(10, {}), false); }

    const auto closed = table.enter("closed", "/w", below(10, {}), true);

    REQUIRE(closed);
    CHECK((*closed)->egress == Egress::none);
    CHECK(table.active_count() == 1);
}

TEST_CASE("run table: beyond its limit it refuses, retryably, and keeps the living") {
    RunTable table(1, nothing_shared);
    auto first = table.enter("a", "/w", below(10, {}), true);
    REQUIRE(first);

    const auto second = table.enter("b", "/w", below(10, {}), true);

    REQUIRE_FALSE(second);
    CHECK(second.error().kind() == ErrorKind::overloaded);
    CHECK(is_retryable(second.error().kind()));
    CHECK(table.find((*first)->id) != nullptr);
}

TEST_CASE("run table: shutting down stops the living and admits nobody") {
    auto table = make_table();
    auto run = table.enter("a", "/w", below(10, {}), true);
    REQUIRE(run);
    std::optional<EndReason> reason;
    (*run)->stop = [&](EndReason given) { reason = given; };

    table.shut_down();

    CHECK(reason == EndReason::daemon_stopping);
    const auto late = table.enter("b", "/w", below(10, {}), true);
    REQUIRE_FALSE(late);
    CHECK(late.error().kind() == ErrorKind::shutting_down);
}

TEST_CASE("run table: a run that has a result is remembered when its ticket ends, others are not") {
    auto table = make_table();
    {
        auto ran = table.enter("ran", "/w", below(10, {}), true);
        auto refused = table.enter("refused", "/x", below(11, {}), true);
        REQUIRE(ran);
        REQUIRE(refused);
        ExitReport report;
        report.exit_signal = 9;
        report.reason = EndReason::timeout;
        (*ran)->report = report;
        CHECK(table.list_recent().empty());
        CHECK(table.list().size() == 2);
    }

    const auto recent = table.list_recent();

    CHECK(table.list().empty());
    REQUIRE(recent.size() == 1);
    CHECK(recent[0].label == "ran");
    CHECK(recent[0].workspace == "/w");
    CHECK_FALSE(recent[0].network);
    CHECK(recent[0].egress == Egress::chosen);  // the report's, not what was told at first
    CHECK(recent[0].exit_signal == 9);
    CHECK(recent[0].reason == EndReason::timeout);
    CHECK(recent[0].ended_ago.count() >= 0);
}

TEST_CASE("run table: no more than the last runs are remembered, the last one first") {
    auto table = make_table();
    for (std::size_t i = 0; i < RunTable::recent_max + 3; ++i) {
        auto run = table.enter(std::to_string(i), "/w", below(10, {}), true);
        REQUIRE(run);
        (*run)->report = ExitReport{};
    }

    const auto recent = table.list_recent();

    REQUIRE(recent.size() == RunTable::recent_max);
    CHECK(recent.front().label == std::to_string(RunTable::recent_max + 2));
    CHECK(recent.back().label == "3");
}
