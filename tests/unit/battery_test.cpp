// SPDX-License-Identifier: MIT
#include "daemon/preflight/battery.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/preflight_fixture.hpp"

using namespace mechad;

namespace {

constexpr auto both = {NetworkProbe::closed, NetworkProbe::open};

const ProbeReport& report_named(const std::vector<ProbeReport>& reports, const std::string& name) {
    const auto found = std::find_if(reports.begin(), reports.end(),
                                    [&](const ProbeReport& one) { return one.name == name; });
    REQUIRE_MESSAGE(found != reports.end(), name);
    return *found;
}

ProbeVerdict verdict_of(const std::vector<ProbeReport>& reports, const std::string& name) {
    return report_named(reports, name).verdict;
}

}  // namespace

TEST_CASE_FIXTURE(PreflightFixture, "battery: a box that works is proved, probe by probe") {
    for (const auto network : both) {
        for (const auto& report : good_reports(network)) {
            CHECK_MESSAGE(report.verdict == ProbeVerdict::proved, report.name, report.detail);
        }
    }
}

TEST_CASE_FIXTURE(PreflightFixture, "battery: no probe is proved by silence") {
    for (const auto network : both) {
        for (const auto& report : judge(battery(network), {}, good_sightings(network))) {
            if (report.name.starts_with("all_")) continue;  // of what was planted
            CHECK_MESSAGE(report.verdict == ProbeVerdict::broken, report.name);
        }
    }
}

TEST_CASE_FIXTURE(PreflightFixture, "battery: one missing answer among many proves nothing") {
    for (const auto& probe : battery(NetworkProbe::closed)) {
        for (const auto& check : probe.checks) {
            auto answers = good_answers(battery(NetworkProbe::closed));
            answers.erase(check);
            const auto reports =
                judge(battery(NetworkProbe::closed), answers, good_sightings(NetworkProbe::closed));
            CHECK_MESSAGE(verdict_of(reports, probe.name) == ProbeVerdict::broken, check);
        }
    }
}

TEST_CASE_FIXTURE(PreflightFixture, "battery: a secret in any answer is a leak, whatever else") {
    int count = 0;
    for (const auto& probe : battery(NetworkProbe::closed)) {
        if (probe.secret.empty()) continue;
        for (const auto& check : probe.checks) {
            for (const char* answer : {"ok xSECRETx", "ok 9=SECRET CONTROL", "errno 2 SECRET"}) {
                auto answers = good_answers(battery(NetworkProbe::closed));
                answers[check] = answer;
                const auto reports = judge(battery(NetworkProbe::closed), answers,
                                           good_sightings(NetworkProbe::closed));
                CHECK_MESSAGE(verdict_of(reports, probe.name) == ProbeVerdict::leak, check);
                ++count;
            }
        }
    }
    CHECK(count >= 3 * 12);
}

TEST_CASE_FIXTURE(PreflightFixture, "battery: what was seen outside outranks what the probe says") {
    for (const auto network : both) {
        for (const auto& probe : battery(network)) {
            if (probe.breach != nullptr) {
                auto seen = good_sightings(network);
                seen.*probe.breach = true;
                const auto reports = judge(battery(network), good_answers(battery(network)), seen);
                CHECK_MESSAGE(verdict_of(reports, probe.name) == ProbeVerdict::leak, probe.name);
            }
            if (probe.control != nullptr) {
                auto seen = good_sightings(network);
                seen.*probe.control = false;
                const auto reports = judge(battery(network), good_answers(battery(network)), seen);
                CHECK_MESSAGE(verdict_of(reports, probe.name) == ProbeVerdict::broken, probe.name);
            }
        }
    }
}

TEST_CASE_FIXTURE(PreflightFixture, "battery: what is not refused leaks, unless it may succeed") {
    for (const auto& probe : battery(NetworkProbe::closed)) {
        if (probe.refused_with.empty()) continue;
        auto answers = good_answers(battery(NetworkProbe::closed));
        answers[probe.checks.back()] = "ok";
        const auto reports =
            judge(battery(NetworkProbe::closed), answers, good_sightings(NetworkProbe::closed));
        const auto expected = probe.may_succeed ? ProbeVerdict::proved : ProbeVerdict::leak;
        CHECK_MESSAGE(verdict_of(reports, probe.name) == expected, probe.name);
    }
}

TEST_CASE_FIXTURE(PreflightFixture,
                  "battery: a refusal of another kind than the backend's is "
                  "broken") {
    for (const auto& probe : battery(NetworkProbe::closed)) {
        if (probe.refused_with.empty()) continue;
        auto answers = good_answers(battery(NetworkProbe::closed));
        answers[probe.checks.front()] = "errno 5 EIO";
        const auto reports =
            judge(battery(NetworkProbe::closed), answers, good_sightings(NetworkProbe::closed));
        CHECK_MESSAGE(verdict_of(reports, probe.name) == ProbeVerdict::broken, probe.name);
    }
}

TEST_CASE_FIXTURE(PreflightFixture, "battery: a box that denies everything is broken") {
    for (const char* refusal : {"errno 13 EACCES", "errno 1 EPERM", "errno 2 ENOENT"}) {
        auto answers = good_answers(battery(NetworkProbe::closed));
        for (auto& [check, answer] : answers) answer = refusal;
        const auto reports =
            judge(battery(NetworkProbe::closed), answers, good_sightings(NetworkProbe::closed));
        for (const char* control : {"workspace_nonce_closed", "workspace_write_closed",
                                    "environment_canary_closed", "tmp_write_closed"}) {
            CHECK(verdict_of(reports, control) == ProbeVerdict::broken);
        }
    }
}

TEST_CASE_FIXTURE(PreflightFixture, "battery: one descriptor too many is a leak") {
    auto answers = good_answers(battery(NetworkProbe::closed));
    answers["fds"] = "ok 0=/dev/null 1=pipe:[1] 2=pipe:[2] 7=/home/u ";
    const auto reports =
        judge(battery(NetworkProbe::closed), answers, good_sightings(NetworkProbe::closed));
    CHECK(verdict_of(reports, "descriptors_closed") == ProbeVerdict::leak);
}

TEST_CASE_FIXTURE(PreflightFixture, "battery: a leak is told even when something else is broken") {
    auto answers = good_answers(battery(NetworkProbe::closed));
    answers["read:/home/u/.canary"] = "errno 5 EIO";
    answers["read:/proc/1/root/home/u/.canary"] = "ok SECRET";
    const auto report = report_named(
        judge(battery(NetworkProbe::closed), answers, good_sightings(NetworkProbe::closed)),
        "home_canary_closed");
    CHECK(report.verdict == ProbeVerdict::leak);
    CHECK(report.detail.find("/proc/1/root") != std::string::npos);
}

TEST_CASE_FIXTURE(PreflightFixture, "battery: the home is tried by every name and root") {
    const auto probes = battery(NetworkProbe::closed);
    const auto home = std::find_if(probes.begin(), probes.end(), [](const Probe& probe) {
        return probe.name == "home_canary_closed";
    });
    REQUIRE(home != probes.end());
    for (const char* path : {"/home/u/.canary", "/home/link/.canary"}) {
        for (const char* root : {"", "/proc/self/root", "/proc/1/root"}) {
            CHECK(std::count(home->checks.begin(), home->checks.end(),
                             std::string("read:") + root + path) == 1);
        }
    }
}

TEST_CASE_FIXTURE(PreflightFixture,
                  "battery: what is not there is not probed, and proves nothing") {
    targets.tmp_canaries.clear();
    targets.queue.clear();
    targets.own_socket.clear();
    for (const auto& probe : battery(NetworkProbe::closed)) {
        CHECK(probe.name != "tmp_canary_closed");
        CHECK(probe.name != "message_queue_closed");
        CHECK(probe.name != "own_socket_closed");
    }
}

TEST_CASE_FIXTURE(PreflightFixture, "battery: an unconfined box is asked for the controls only") {
    const auto probes = make_battery(targets, NetworkProbe::open, false);
    for (const auto& probe : probes) CHECK(probe.refused_with.empty());
    CHECK(probes.size() == 3);
}

TEST_CASE_FIXTURE(PreflightFixture, "battery: a mount that shows the home is a leak, by any name") {
    const auto verdict_with = [this](const std::string& mount) {
        auto answers = good_answers(battery(NetworkProbe::closed));
        answers["mounts"] += mount + " ";
        return verdict_of(
            judge(battery(NetworkProbe::closed), answers, good_sightings(NetworkProbe::closed)),
            "home_mounts_closed");
    };
    for (const char* mount : {"254:0:/home/u", "254:0:/home/u/.ssh", "254:0:/home", "254:0:/"}) {
        CHECK_MESSAGE(verdict_with(mount) == ProbeVerdict::leak, mount);
    }
    for (const char* mount : {"254:0:/home/u2", "254:1:/home/u", "254:0:/srv", "254:0:/home/u/data",
                              "254:0:/home/u/data/sub"}) {
        CHECK_MESSAGE(verdict_with(mount) == ProbeVerdict::proved, mount);
    }
}
