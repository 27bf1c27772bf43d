// SPDX-License-Identifier: MIT
#include "client/ctl/doctor/judge.hpp"

#include <algorithm>

namespace mechad::ctl {

namespace {

constexpr int exit_bad_config = 78;  // of mechad
constexpr mode_t others_bits = 0077;

// A verdict counts with the exit code that belongs to it, of the backend that was asked for, and
// with the probes that carry it.
bool has_passed(const CheckRun& check) {
    if (!check.status || check.exit_code != 0 || check.is_late) return false;
    const StatusReport& status = *check.status;
    const auto& probes = status.preflight.probes;
    return status.preflight.state == PreflightState::passed && !probes.empty() &&
           std::all_of(
               probes.begin(), probes.end(),
               [](const ProbeReport& probe) { return probe.verdict == ProbeVerdict::proved; }) &&
           (check.kind.empty() || check.kind == status.backend);
}

bool has_verdict(const CheckRun& check) {
    return has_passed(check) || (check.status && !check.is_late && check.exit_code == 1 &&
                                 check.status->preflight.state == PreflightState::failed);
}

std::string join(const std::vector<std::string>& words) {
    std::string text;
    for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
}

// How a check ended that has no verdict.
std::string how_it_ended(const CheckRun& check) {
    if (check.is_late) return "mechad --check did not end in time and was stopped";
    const std::string said = check.said.empty() ? "" : ": " + check.said;
    return "mechad --check ended with " + std::to_string(check.exit_code) + said;
}

Finding judge_user(const DoctorFacts& facts) {
    if (facts.uid != 0) return {"user", Mark::good, "uid " + std::to_string(facts.uid), ""};
    return {"user", Mark::warning,
            "uid 0: a command has no capabilities, but root's files in the system directories can "
            "be read",
            "run mechad and mechad-ctl as an ordinary user"};
}

Finding judge_program(const DoctorFacts& facts) {
    if (facts.is_program) return {"program", Mark::good, facts.program, ""};
    return {"program", Mark::bad, facts.program + " is missing or cannot be executed",
            "install mechad completely: mechad-ctl, mechad and libexec/mechad belong together"};
}

Finding judge_config(const DoctorFacts& facts) {
    const CheckRun& check = facts.configured;
    if (!has_verdict(check)) {
        const bool is_config = check.exit_code == exit_bad_config;
        return {"config", Mark::bad, is_config ? check.said : how_it_ended(check),
                is_config ? "correct that line; mechad does not start before" : ""};
    }
    const StatusReport& status = *check.status;
    const std::string where =
        status.config_path.empty() ? "no file, so the defaults" : status.config_path;
    const std::string cause = where + ": kind = \"" + status.backend + "\", network " +
                              (status.network ? "open" : "closed");
    if (status.confined) return {"config", Mark::good, cause, ""};
    const auto kinds = working_kinds(facts);
    const std::string kind = kinds.empty() ? "bwrap" : kinds.front();
    return {"config", Mark::warning, cause + "; nothing is confined",
            "mkdir -p ~/.config/mechad && printf '[sandbox]\\nkind = \"" + kind +
                "\"\\n' > ~/.config/mechad/config.toml"};
}

std::string proved_text(const StatusReport& status) {
    std::string text = status.backend_version.empty() ? "" : status.backend_version + ", ";
    text += std::to_string(status.preflight.probes.size()) + " probes proved";
    std::string claims;
    for (const auto& claim : status.claims) {
        claims += (claims.empty() ? "; " : ", ") + claim.key + " " + claim.value;
    }
    return text + claims;
}

// Each probe that was not proved, with what it saw.
std::string failed_probes(const StatusReport& status) {
    std::string text;
    for (const auto& probe : status.preflight.probes) {
        if (probe.verdict == ProbeVerdict::proved) continue;
        text += std::string("\n") + (probe.verdict == ProbeVerdict::leak ? "LEAK " : "broken ") +
                probe.name + ": " + probe.detail;
    }
    return text;
}

Finding judge_kind(const CheckRun& check, bool is_configured) {
    const Mark mark = is_configured ? Mark::bad : Mark::warning;
    if (!has_verdict(check)) {
        if (check.exit_code == exit_bad_config) return {check.kind, mark, check.said, ""};
        return {check.kind, mark, how_it_ended(check), ""};
    }
    const StatusReport& status = *check.status;
    if (!has_passed(check)) {
        return {check.kind, mark, status.preflight.reason + failed_probes(status),
                status.preflight.remedy};
    }
    if (!status.confined) return {check.kind, Mark::warning, "works, and confines nothing", ""};
    return {check.kind, Mark::good, proved_text(status), ""};
}

Finding judge_container(const DoctorFacts& facts) {
    if (facts.container.empty()) return {"container", Mark::good, "none is known", ""};
    return {"container", Mark::warning,
            "this is inside a container (" + facts.container +
                "): what is proved is proved against the container, and what the container shows "
                "of its host can be seen by boxes",
            ""};
}

std::string start_command(const DoctorFacts& facts) {
    const bool has_unit = facts.unit.has_manager && !facts.unit.socket_unit.empty();
    return has_unit ? "systemctl --user enable --now mechad.socket" : "mechad &";
}

Finding judge_socket(const SocketFacts& socket) {
    const auto slash = socket.path.rfind('/');
    const std::string directory = socket.path.substr(0, slash);
    if (!socket.way_problem.empty()) {
        return {"socket", Mark::bad, socket.way_problem,
                "mkdir -p -m 0700 ~/.mechad && export MECHAD_SOCKET=~/.mechad/mechad.sock"};
    }
    if (!socket.has_directory) {
        return {"socket", Mark::good, socket.path + " is made when mechad starts", ""};
    }
    if (!socket.is_private) {
        return {"socket", Mark::bad,
                directory + " is not this user's alone, so that mechad does not use it",
                "chmod 0700 '" + directory + "'"};
    }
    if (!socket.exists) return {"socket", Mark::good, directory + " is private; no socket yet", ""};
    if (!socket.is_ours || (socket.mode & others_bits) != 0) {
        return {"socket", Mark::bad, socket.path + " is not a socket of this user alone",
                "rm '" + socket.path + "', then start mechad again"};
    }
    return {"socket", Mark::good, socket.path, ""};
}

Finding judge_daemon(const DoctorFacts& facts) {
    if (!facts.daemon) {
        // Nobody to talk to is ordinary; somebody who must not be talked to is not.
        const bool is_absent = !facts.socket.exists;
        return {"daemon", is_absent ? Mark::warning : Mark::bad,
                is_absent ? "mechad is not running" : facts.daemon_problem,
                is_absent ? start_command(facts) : facts.daemon_remedy};
    }
    const StatusReport& status = *facts.daemon;
    if (status.preflight.state == PreflightState::failed) {
        return {"daemon", Mark::bad, "refuses every run: " + status.preflight.reason,
                status.preflight.remedy + "\nmechad-ctl recheck"};
    }
    const auto& configured = facts.configured.status;
    if (configured && configured->policy_digest != status.policy_digest) {
        return {"daemon", Mark::warning, "it runs with another policy than the configuration has",
                "stop mechad and start it again, when its runs have ended"};
    }
    if (configured && configured->version != status.version) {
        return {
            "daemon", Mark::warning,
            "it is version " + status.version + ", and " + configured->version + " is installed",
            "stop mechad and start it again, when its runs have ended"};
    }
    const std::string what = status.version + ", " + status.backend + ", ";
    const std::string runs =
        std::to_string(status.runs_active) + " of " + std::to_string(status.runs_max) + " runs";
    if (!status.confined) {
        return {"daemon", Mark::warning, what + "NOTHING IS CONFINED, " + runs,
                "set kind in [sandbox] and start mechad again"};
    }
    if (status.preflight.state != PreflightState::passed || status.preflight.probes.empty()) {
        return {"daemon", Mark::warning, what + "nothing is proved yet, " + runs,
                "mechad-ctl status tells when"};
    }
    return {"daemon", Mark::good, what + "proved, " + runs, ""};
}

// Clients look where their environment says, not into the configuration.
std::optional<Finding> judge_meeting_place(const DoctorFacts& facts) {
    const auto& configured = facts.configured.status;
    if (!configured || configured->socket_path == facts.socket.path) return std::nullopt;
    return Finding{"socket path", Mark::warning,
                   "mechad would listen on " + configured->socket_path + ", clients look for " +
                       facts.socket.path,
                   "export MECHAD_SOCKET='" + configured->socket_path + "'"};
}

Finding judge_unit(const UnitFacts& unit) {
    if (!unit.has_manager) {
        return {"unit", Mark::warning, "no systemd user manager runs for this user",
                "start mechad by hand: mechad &"};
    }
    if (unit.is_masked) {
        return {"unit", Mark::warning, "mechad.socket is masked",
                "systemctl --user unmask mechad.socket"};
    }
    if (unit.socket_unit.empty()) {
        return {"unit", Mark::warning,
                "mechad.socket is not installed where systemd looks for user units",
                "systemctl --user link PREFIX/lib/systemd/user/mechad.{socket,service}"};
    }
    if (!unit.is_enabled) {
        return {"unit", Mark::warning, unit.socket_unit + " is not enabled",
                "systemctl --user enable --now mechad.socket"};
    }
    if (!unit.has_config) {
        return {"unit", Mark::warning,
                unit.socket_unit + " is enabled, and opens nothing without " + unit.config,
                "write that file, then: systemctl --user start mechad.socket"};
    }
    return {"unit", Mark::good, unit.socket_unit + " is enabled", ""};
}

Finding judge_linger(const UnitFacts& unit) {
    if (unit.lingers) return {"linger", Mark::good, "mechad may outlive the last login", ""};
    return {"linger", Mark::warning,
            "a unit of this user, and mechad with it, ends with the last login",
            "loginctl enable-linger " + unit.user};
}

Finding judge_delegation(const DelegationFacts& delegation) {
    const std::string fix =
        "sudo mkdir -p /etc/systemd/system/user@.service.d\n"
        "printf '[Service]\\nDelegate=cpu memory pids\\n' | sudo tee "
        "/etc/systemd/system/user@.service.d/delegate.conf\n"
        "sudo systemctl daemon-reload, then log in again";
    if (delegation.directory.empty()) {
        return {"delegation", Mark::warning,
                "no cgroup v2 of a user manager is here, so that runs cannot have cgroups", ""};
    }
    if (!delegation.is_ours) {
        return {"delegation", Mark::warning, delegation.directory + " is not this user's", fix};
    }
    std::vector<std::string> missing;
    for (const std::string controller : {"cpu", "memory", "pids"}) {
        const auto& there = delegation.controllers;
        if (std::find(there.begin(), there.end(), controller) != there.end()) continue;
        missing.push_back(controller);
    }
    if (missing.empty()) return {"delegation", Mark::good, join(delegation.controllers), ""};
    return {"delegation", Mark::warning,
            "the user manager lacks the cgroup controllers " + join(missing), fix};
}

}  // namespace

std::vector<std::string> working_kinds(const DoctorFacts& facts) {
    std::vector<std::string> kinds;
    for (const auto& check : facts.kinds) {
        if (has_passed(check) && check.status->confined) kinds.push_back(check.kind);
    }
    return kinds;
}

std::vector<Finding> judge(const DoctorFacts& facts) {
    std::vector<Finding> findings = {judge_user(facts), judge_program(facts)};
    if (!facts.is_program) return findings;
    findings.push_back(judge_config(facts));
    const auto& configured = facts.configured.status;
    for (const auto& check : facts.kinds) {
        findings.push_back(judge_kind(check, configured && configured->backend == check.kind));
    }
    if (working_kinds(facts).empty()) {
        findings.push_back({"sandbox", Mark::bad, "no kind that confines works here",
                            "follow one of the remedies above"});
    }
    findings.push_back(judge_container(facts));
    findings.push_back(judge_socket(facts.socket));
    if (auto place = judge_meeting_place(facts)) findings.push_back(*std::move(place));
    findings.push_back(judge_daemon(facts));
    findings.push_back(judge_unit(facts.unit));
    if (facts.unit.has_manager) findings.push_back(judge_linger(facts.unit));
    findings.push_back(judge_delegation(facts.delegation));
    return findings;
}

}  // namespace mechad::ctl
