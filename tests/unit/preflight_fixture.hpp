// SPDX-License-Identifier: MIT
// A box that works, as preflight sees it: what was planted, what the probe answers, what is seen
// outside.
#pragma once

#include <string>
#include <vector>

#include "daemon/preflight/battery.hpp"
#include "tests/unit/result_printer.hpp"

namespace mechad {

class PreflightFixture {
public:
    PreflightFixture() {
        targets.token = "TOKEN";
        targets.secret = "SECRET";
        targets.nonce_path = "/scratch/ws/nonce";
        targets.nonce = "NONCE";
        targets.workspace_mark = "/scratch/ws/mark";
        targets.orphan_mark = "/scratch/ws/orphan";
        targets.home_canaries = {"/home/u/.canary", "/home/link/.canary"};
        targets.home_mounts = {"254:0:/home/u"};
        targets.planned_mounts = {"254:0:/home/u/.cache/scratch/ws", "254:0:/home/u/data"};
        targets.tmp_canaries = {"/tmp/.canary", "/dev/shm/.canary"};
        targets.tmp_marks = {"/tmp/.mark", "/dev/shm/.mark"};
        targets.outside_marks = {"/home/u/.mark", "/home/u/.canary", "/usr/.mark"};
        targets.shadowed_marks = {"/tmp/state/mark"};
        targets.tcp = "127.0.0.1:4242";
        targets.udp = "127.0.0.1:4243";
        targets.unix_path = "probe.sock";
        targets.abstract_name = "canary";
        targets.own_socket = "/run/user/1/mechad/mechad.sock";
        targets.witness = 77;
        targets.word = "WORD";
        targets.control = "CONTROL";
        targets.shared_memory = 5;
        targets.queue = "/canary";
    }

    std::vector<Probe> battery(NetworkProbe network) const {
        return make_battery(targets, network, true);
    }

    static ProbeAnswers good_answers(const std::vector<Probe>& battery) {
        ProbeAnswers answers;
        for (const auto& probe : battery) {
            for (const auto& check : probe.checks) {
                answers[check] = probe.refused_with.empty()
                                     ? "ok " + probe.needs
                                     : "errno 0 " + std::string(probe.refused_with.front());
            }
        }
        answers["mounts"] =
            "ok 0:40:/ 254:0:/usr 254:0:/etc 0:41:/ 254:0:/home/u/.cache/scratch/ws ";
        answers["fds"] = "ok 0=/dev/null 1=pipe:[1] 2=pipe:[2] ";
        return answers;
    }

    static Sightings good_sightings(NetworkProbe network) {
        Sightings seen;
        seen.workspace_marked = true;
        seen.orphan_marked = true;
        seen.canaries_intact = true;
        seen.tcp_heard = network == NetworkProbe::open;
        seen.udp_heard = network == NetworkProbe::open;
        return seen;
    }

    std::vector<ProbeReport> good_reports(NetworkProbe network) const {
        const auto probes = battery(network);
        return judge(probes, good_answers(probes), good_sightings(network));
    }

    std::vector<ProbeReport> reports_of_both() const {
        auto reports = good_reports(NetworkProbe::closed);
        for (auto& report : good_reports(NetworkProbe::open)) reports.push_back(report);
        return reports;
    }

    ProbeTargets targets;
};

}  // namespace mechad
