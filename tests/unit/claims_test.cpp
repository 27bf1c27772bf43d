// SPDX-License-Identifier: MIT
#include "daemon/claims.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/unit/preflight_fixture.hpp"

using namespace mechad;

namespace {

constexpr BoxTraits closed_box{.confined = true, .network = false, .has_extra_binds = false};
constexpr BoxTraits open_box{.confined = true, .network = true, .has_extra_binds = false};

std::set<std::string> keys_of(const Claims& claims) {
    std::set<std::string> keys;
    for (const auto& claim : claims) keys.insert(claim.key);
    return keys;
}

std::vector<ProbeReport> without(std::vector<ProbeReport> reports, const std::string& name) {
    std::erase_if(reports, [&](const ProbeReport& report) { return report.name == name; });
    return reports;
}

}  // namespace

TEST_CASE_FIXTURE(PreflightFixture, "claims: a box that works earns the whole table") {
    const auto proofs = make_proofs(reports_of_both());
    const std::set<std::string> all = {"home", "network", "unix_sockets", "tmp",      "processes",
                                       "ipc",  "signals", "metadata",     "tree_kill"};

    CHECK(keys_of(proofs.closed) == all);
    std::set<std::string> all_open = all;
    all_open.erase("metadata");
    CHECK(keys_of(proofs.open) == all_open);
}

TEST_CASE_FIXTURE(PreflightFixture, "claims: every value goes with any one of its probes") {
    // By probe, in its box: the keys that rest on it.
    const std::map<std::string, std::set<std::string>> resting = {
        {"home_canary", {"home"}},
        {"home_mounts", {"home"}},
        {"all_homes", {"home"}},
        {"all_tmp", {"tmp"}},
        {"tmp_canary", {"tmp"}},
        {"tmp_write", {"tmp"}},
        {"tcp_listener", {"network"}},
        {"unix_listener", {"unix_sockets"}},
        {"abstract_listener", {"unix_sockets"}},
        {"environment_canary", {"processes"}},
        {"process_canary", {"processes"}},
        {"signal_witness", {"signals"}},
        {"shared_memory", {"ipc"}},
        {"message_queue", {"ipc"}},
        {"orphan", {"tree_kill"}}};
    // Of closed boxes alone; a control in the open box counts for the closed one.
    const std::map<std::string, std::set<std::string>> resting_closed = {
        {"udp_listener_closed", {"network"}},   {"other_families_closed", {"network"}},
        {"home_metadata_closed", {"metadata"}}, {"home_mounts_closed", {"metadata"}},
        {"all_homes_closed", {"metadata"}},     {"tcp_listener_open", {"network"}},
        {"udp_listener_open", {"network"}}};

    const auto all = reports_of_both();
    const auto whole = make_proofs(all);
    for (const auto& report : all) {
        for (const auto network : {NetworkProbe::closed, NetworkProbe::open}) {
            const std::string suffix(suffix_of(network));
            std::set<std::string> expected;
            if (report.name.ends_with(suffix)) {
                const auto name = report.name.substr(0, report.name.size() - suffix.size());
                if (resting.contains(name)) expected = resting.at(name);
            }
            if (network == NetworkProbe::closed && resting_closed.contains(report.name)) {
                expected.merge(std::set(resting_closed.at(report.name)));
            }
            for (const bool is_left_out : {true, false}) {
                auto changed = without(all, report.name);
                if (!is_left_out) changed.push_back({report.name, ProbeVerdict::broken, ""});
                const auto proofs = make_proofs(changed);
                const bool is_closed = network == NetworkProbe::closed;
                std::set<std::string> gone = keys_of(is_closed ? whole.closed : whole.open);
                for (const auto& key : keys_of(is_closed ? proofs.closed : proofs.open)) {
                    gone.erase(key);
                }
                CHECK_MESSAGE(gone == expected, report.name, suffix);
            }
        }
    }
}

TEST_CASE_FIXTURE(PreflightFixture, "claims: a user without a home is told so") {
    targets.home_canaries.clear();
    const auto proofs = make_proofs(reports_of_both());

    CHECK(proofs.closed.front() ==
          Claim{"home", "absent", {"home_absent_closed", "all_homes_closed"}});
    CHECK_FALSE(keys_of(proofs.closed).contains("metadata"));
}

TEST_CASE_FIXTURE(PreflightFixture, "claims: a home without a canary is not spoken of") {
    targets.has_unproved_home = true;
    CHECK_FALSE(keys_of(make_proofs(reports_of_both()).closed).contains("home"));
    targets.home_canaries.clear();
    CHECK_FALSE(keys_of(make_proofs(reports_of_both()).closed).contains("home"));
}

TEST_CASE_FIXTURE(PreflightFixture, "claims: a directory without a canary ends the claim of tmp") {
    targets.has_unproved_tmp = true;
    CHECK_FALSE(keys_of(make_proofs(reports_of_both()).closed).contains("tmp"));
}

TEST_CASE_FIXTURE(PreflightFixture, "claims: an unconfined box claims nothing and has the worst") {
    const BoxTraits box{.confined = false, .network = true, .has_extra_binds = false};
    const auto proofs = make_proofs(reports_of_both());

    CHECK(claims_for(box, proofs).empty());
    CHECK(capabilities_for(box, proofs) == Capabilities{});
}

TEST_CASE_FIXTURE(PreflightFixture, "claims: a closed box with every proof says egress none") {
    const auto said = capabilities_for(closed_box, make_proofs(reports_of_both()));

    CHECK(said.egress == Egress::none);
    CHECK_FALSE(said.can_reach_network);
    CHECK_FALSE(said.reaches_beyond_workspace);
    CHECK(said.private_data);
    CHECK(said.destructive);
    CHECK_FALSE(said.untrusted_input);
}

TEST_CASE_FIXTURE(PreflightFixture, "claims: without any of its proofs a closed box says chosen") {
    for (const char* probe : {"tcp_listener_closed", "udp_listener_closed", "other_families_closed",
                              "tcp_listener_open", "udp_listener_open", "unix_listener_closed",
                              "abstract_listener_closed"}) {
        const auto proofs = make_proofs(without(reports_of_both(), probe));
        CHECK_MESSAGE(capabilities_for(closed_box, proofs).egress == Egress::chosen, probe);
        CHECK_MESSAGE(capabilities_for(closed_box, proofs).can_reach_network, probe);
    }
    CHECK(capabilities_for(closed_box, Proofs{}).egress == Egress::chosen);
}

TEST_CASE_FIXTURE(PreflightFixture, "claims: an open box says chosen") {
    const auto said = capabilities_for(open_box, make_proofs(reports_of_both()));

    CHECK(said.egress == Egress::chosen);
    CHECK(said.can_reach_network);
}

TEST_CASE_FIXTURE(PreflightFixture, "claims: an extra bind reaches beyond the workspace") {
    BoxTraits box = closed_box;
    box.has_extra_binds = true;

    CHECK(capabilities_for(box, make_proofs(reports_of_both())).reaches_beyond_workspace);
}
