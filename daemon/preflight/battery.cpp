// SPDX-License-Identifier: MIT
#include "daemon/preflight/battery.hpp"

#include <algorithm>
#include <array>

namespace mechad {

namespace {

constexpr std::size_t detail_bytes_max = 600;

std::vector<std::string_view> words_of(std::string_view detail) {
    std::vector<std::string_view> words;
    while (!detail.empty()) {
        const auto end = std::min(detail.find(' '), detail.size());
        words.push_back(detail.substr(0, end));
        detail.remove_prefix(std::min(detail.size(), end + 1));
    }
    return words;
}

// Descriptors 0, 1 and 2, and no other.
bool has_more_descriptors(std::string_view detail) {
    const auto words = words_of(detail);
    return std::any_of(words.begin(), words.end(), [](std::string_view word) {
        const std::string_view number = word.substr(0, word.find('='));
        return number != "0" && number != "1" && number != "2";
    });
}

// `inner` is `outer` or lies in it, on the same device.
bool lies_in_mount(std::string_view inner, std::string_view outer) {
    if (inner == outer) return true;
    return inner.starts_with(outer) && (outer.ends_with('/') || inner[outer.size()] == '/');
}

bool shows_home(std::string_view detail, const ProbeTargets& targets) {
    const auto mounts = words_of(detail);
    return std::any_of(mounts.begin(), mounts.end(), [&](std::string_view mount) {
        const auto holds = [mount](const std::string& outer) {
            return lies_in_mount(mount, outer);
        };
        const auto& planned = targets.planned_mounts;
        if (std::any_of(planned.begin(), planned.end(), holds)) return false;
        const auto& homes = targets.home_mounts;
        return std::any_of(homes.begin(), homes.end(), [&](const std::string& home) {
            return holds(home) || lies_in_mount(home, mount);
        });
    });
}

std::vector<std::string> checks_of(std::string_view check,
                                   const std::vector<std::string>& subjects) {
    std::vector<std::string> checks;
    checks.reserve(subjects.size());
    for (const auto& subject : subjects) checks.push_back(std::string(check) + subject);
    return checks;
}

// A file by its path, and by the roots that /proc shows of this process and of the first one.
std::vector<std::string> routes_to(const std::vector<std::string>& paths) {
    std::vector<std::string> routes;
    for (const auto& path : paths) {
        for (const char* root : {"", "/proc/self/root", "/proc/1/root"}) {
            routes.push_back(root + path);
        }
    }
    return routes;
}

void add_controls(std::vector<Probe>& battery, const ProbeTargets& targets) {
    battery.push_back({.name = "workspace_nonce",
                       .checks = {"read:" + targets.nonce_path},
                       .needs = targets.nonce});
    battery.push_back({.name = "workspace_write",
                       .checks = {"write:" + targets.workspace_mark},
                       .control = &Sightings::workspace_marked});
    battery.push_back({.name = "descriptors", .checks = {"fds"}, .is_leak = has_more_descriptors});
}

void add_files(std::vector<Probe>& battery, const ProbeTargets& targets) {
    if (!targets.home_canaries.empty()) {
        battery.push_back({.name = "home_canary",
                           .checks = checks_of("read:", routes_to(targets.home_canaries)),
                           .refused_with = {"ENOENT", "ENOTDIR", "EACCES"},
                           .secret = targets.secret,
                           .control = &Sightings::canaries_intact});
        battery.push_back({.name = "home_metadata",
                           .checks = checks_of("stat:", routes_to(targets.home_canaries)),
                           .refused_with = {"ENOENT", "ENOTDIR", "EACCES"},
                           .control = &Sightings::canaries_intact});
    } else {
        battery.push_back({.name = "home_absent", .checks = {}});
    }
    battery.push_back(
        {.name = "home_mounts",
         .checks = {"mounts"},
         .is_leak = [targets](std::string_view detail) { return shows_home(detail, targets); }});
    if (!targets.has_unproved_home) battery.push_back({.name = "all_homes", .checks = {}});
    battery.push_back({.name = "outside_write",
                       .checks = checks_of("write:", targets.outside_marks),
                       .refused_with = {"EROFS", "ENOENT", "ENOTDIR", "EACCES"},
                       .breach = &Sightings::outside_marked});
    if (!targets.shadowed_marks.empty()) {
        battery.push_back({.name = "shadowed_write",
                           .checks = checks_of("write:", targets.shadowed_marks),
                           .refused_with = {"EROFS", "ENOENT", "ENOTDIR", "EACCES"},
                           .may_succeed = true,
                           .breach = &Sightings::outside_marked});
    }
    if (!targets.tmp_canaries.empty()) {
        battery.push_back({.name = "tmp_canary",
                           .checks = checks_of("read:", targets.tmp_canaries),
                           .refused_with = {"ENOENT"},
                           .secret = targets.secret,
                           .control = &Sightings::canaries_intact});
    }
    if (!targets.has_unproved_tmp) battery.push_back({.name = "all_tmp", .checks = {}});
    battery.push_back({.name = "tmp_write",
                       .checks = checks_of("write:", targets.tmp_marks),
                       .breach = &Sightings::tmp_marked});
}

void add_network(std::vector<Probe>& battery, const ProbeTargets& targets, NetworkProbe network) {
    Probe tcp{.name = "tcp_listener", .checks = {"tcp:" + targets.tcp}};
    Probe udp{.name = "udp_listener", .checks = {"udp:" + targets.udp}};
    if (network == NetworkProbe::open) {
        tcp.control = &Sightings::tcp_heard;
        udp.control = &Sightings::udp_heard;
    } else {
        tcp.breach = &Sightings::tcp_heard;
        udp.breach = &Sightings::udp_heard;
        tcp.refused_with = {"ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH"};
        udp.refused_with = tcp.refused_with;
        udp.may_succeed = true;  // a datagram to nobody is sent as well as any
    }
    battery.push_back(std::move(tcp));
    battery.push_back(std::move(udp));
    // Families that know no network namespace (AF_VSOCK), or reach into the kernel (AF_ALG) and
    // below the network (AF_PACKET).
    battery.push_back({.name = "other_families",
                       .checks = {"socket:40,1,0", "socket:38,5,0", "socket:17,3,768"},
                       .refused_with = {"EPERM"}});
}

void add_unix_sockets(std::vector<Probe>& battery, const ProbeTargets& targets) {
    battery.push_back({.name = "unix_listener",
                       .checks = {"unix:" + targets.unix_path},
                       .refused_with = {"EPERM"},
                       .breach = &Sightings::path_heard});
    battery.push_back({.name = "abstract_listener",
                       .checks = {"unix:@" + targets.abstract_name},
                       .refused_with = {"EPERM"},
                       .breach = &Sightings::abstract_heard});
    if (targets.own_socket.empty()) return;
    battery.push_back({.name = "own_socket",
                       .checks = {"unix:" + targets.own_socket},
                       .refused_with = {"EPERM"},
                       .breach = &Sightings::own_socket_reached});
}

void add_processes(std::vector<Probe>& battery, const ProbeTargets& targets) {
    battery.push_back({.name = "environment_canary",
                       .checks = {"environ:" + targets.word},
                       .secret = targets.secret,
                       .needs = targets.control});
    // The probe has the word on its command line, and finds at least itself.
    battery.push_back({.name = "process_canary",
                       .checks = {"cmdline:" + targets.word},
                       .secret = targets.secret,
                       .needs = "="});
    // The number may belong to a process of the box, which takes no notice.
    battery.push_back({.name = "signal_witness",
                       .checks = {"signal:" + std::to_string(targets.witness)},
                       .refused_with = {"ESRCH", "EPERM"},
                       .may_succeed = true,
                       .breach = &Sightings::witness_signalled});
    if (targets.shared_memory >= 0) {
        battery.push_back({.name = "shared_memory",
                           .checks = {"shm:" + std::to_string(targets.shared_memory)},
                           .refused_with = {"EINVAL"},
                           .secret = targets.secret});
    }
    if (!targets.queue.empty()) {
        battery.push_back({.name = "message_queue",
                           .checks = {"queue:" + targets.queue},
                           .refused_with = {"ENOENT"},
                           .secret = targets.secret});
    }
    // Last, since what it leaves behind looks like the probe itself.
    battery.push_back({.name = "orphan",
                       .checks = {"orphan:" + targets.orphan_mark},
                       .breach = &Sightings::orphan_alive,
                       .control = &Sightings::orphan_marked});
}

bool is_ok(std::string_view answer) { return answer == "ok" || answer.starts_with("ok "); }

struct Judgement {
    ProbeVerdict verdict = ProbeVerdict::proved;
    std::string why;
};

Judgement judge_answer(const Probe& probe, std::string_view answer) {
    if (!probe.secret.empty() && answer.find(probe.secret) != std::string_view::npos) {
        return {ProbeVerdict::leak, "read what is outside"};
    }
    const bool must_fail = !probe.refused_with.empty();
    if (is_ok(answer)) {
        if (must_fail && !probe.may_succeed) return {ProbeVerdict::leak, "was not refused"};
        if (probe.is_leak != nullptr && probe.is_leak(answer.substr(std::min<std::size_t>(
                                            answer.size(), std::string_view("ok ").size())))) {
            return {ProbeVerdict::leak, std::string(answer)};
        }
        if (answer.find(probe.needs) == std::string_view::npos) {
            return {ProbeVerdict::broken, "did not find what is there: " + std::string(answer)};
        }
        return {};
    }
    const auto is_expected = [&](std::string_view name) {
        return answer.starts_with("errno ") && answer.ends_with(" " + std::string(name));
    };
    if (std::any_of(probe.refused_with.begin(), probe.refused_with.end(), is_expected)) return {};
    return {ProbeVerdict::broken, std::string(answer)};
}

// The worst of all answers: a leak outranks what is broken.
ProbeReport judge_probe(const Probe& probe, const ProbeAnswers& answers, const Sightings& seen) {
    ProbeReport report{probe.name, ProbeVerdict::proved, {}};
    const auto lower = [&report](ProbeVerdict verdict, const std::string& why) {
        if (verdict == ProbeVerdict::proved || report.verdict == ProbeVerdict::leak) return;
        if (report.verdict == verdict) return;
        report.verdict = verdict;
        report.detail = why.substr(0, detail_bytes_max);
    };
    for (const auto& check : probe.checks) {
        const auto found = answers.find(check);
        const std::string answer = found == answers.end() ? "no answer" : found->second;
        const auto judgement = judge_answer(probe, answer);
        lower(judgement.verdict, check + " " + judgement.why);
        if (report.verdict == ProbeVerdict::proved) report.detail = answer;
    }
    if (probe.breach != nullptr && seen.*probe.breach) {
        lower(ProbeVerdict::leak, "it got through, as was seen outside");
    }
    if (probe.control != nullptr && !(seen.*probe.control)) {
        lower(ProbeVerdict::broken, "nothing of it was seen outside");
    }
    report.detail.resize(std::min(report.detail.size(), detail_bytes_max));
    return report;
}

}  // namespace

std::string_view suffix_of(NetworkProbe network) {
    return network == NetworkProbe::closed ? "_closed" : "_open";
}

std::vector<Probe> make_battery(const ProbeTargets& targets, NetworkProbe network,
                                bool is_confined) {
    std::vector<Probe> battery;
    add_controls(battery, targets);
    if (is_confined) {
        add_files(battery, targets);
        add_network(battery, targets, network);
        add_unix_sockets(battery, targets);
        add_processes(battery, targets);
    }
    for (auto& probe : battery) probe.name += suffix_of(network);
    return battery;
}

std::vector<ProbeReport> judge(const std::vector<Probe>& battery, const ProbeAnswers& answers,
                               const Sightings& seen) {
    std::vector<ProbeReport> reports;
    reports.reserve(battery.size());
    for (const auto& probe : battery) reports.push_back(judge_probe(probe, answers, seen));
    return reports;
}

}  // namespace mechad
