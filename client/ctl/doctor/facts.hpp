// SPDX-License-Identifier: MIT
// What doctor looked at, as plain values: judge.hpp says what it means.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "proto/messages.hpp"

namespace mechad::ctl {

// One `mechad --check`: the real preflight of one backend, in a process of its own.
struct CheckRun {
    std::string kind = {};  // that was asked for; empty: what the configuration says
    int exit_code = 0;      // 128 + N: signal N ended it
    bool is_late = false;   // it was stopped at the deadline
    std::string said = {};  // its last line on stderr; empty when it said nothing
    std::optional<StatusReport> status = {};
};

struct SocketFacts {
    std::string path = {};
    bool has_directory = false;
    bool is_private = false;       // the directory is this user's, and others may not enter it
    std::string way_problem = {};  // why mechad could not serve there, as a clause; empty: it can
    bool exists = false;
    mode_t mode = 0;
    bool is_ours = false;
};

// systemd's user manager, by what lies in the file system: no bus is asked.
struct UnitFacts {
    std::string socket_unit = {};  // the path of mechad.socket; empty: not installed where it looks
    bool is_masked = false;
    bool is_enabled = false;
    std::string config = {};  // the file without which the unit opens nothing
    bool has_config = false;
    bool has_manager = false;  // it runs, for this user
    bool lingers = false;
    std::string user = {};
};

struct DelegationFacts {
    std::string directory = {};                 // of the user manager's cgroup v2; empty: none
    bool is_ours = false;                       // this user may make cgroups below it
    std::vector<std::string> controllers = {};  // that are delegated to it
};

struct DoctorFacts {
    uid_t uid = 0;
    std::string program = {};  // mechad, beside mechad-ctl
    bool is_program = false;
    CheckRun configured;
    std::vector<CheckRun> kinds;  // every backend, in the order in which they are advised
    SocketFacts socket;
    std::optional<StatusReport> daemon;  // of the one that answers on the socket
    std::string daemon_problem = {};     // why there is none
    std::string daemon_remedy = {};
    UnitFacts unit;
    DelegationFacts delegation;
    std::string container = {};  // empty: none known
};

// Takes as long as the preflights do, some seconds each.
DoctorFacts gather_facts(const std::string& socket_path);

}  // namespace mechad::ctl
