// SPDX-License-Identifier: MIT
// A plan is data: what the launcher will start for a box, down to each option, with descriptors
// named by role so that making a plan needs no file and no process.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "daemon/init/init_wire.hpp"

namespace mechad {

enum class FdRole { init_binary, workspace, extra_bind, passwd_file, group_file };

// Stands for a descriptor number in an option list; the launcher fills it in.
struct FdRef {
    FdRole role;
    std::size_t index = 0;  // of Box::extra_binds()
    bool operator==(const FdRef&) const = default;
};

using PlanWord = std::variant<std::string, FdRef>;

// What mechad-init applies to the command before exec.
struct Hardening {
    bool no_new_privs = false;
    bool new_keyring = false;
    bool core_zero = false;
    bool filter = false;  // the seccomp filter
    bool operator==(const Hardening&) const = default;
};

enum class Maker {
    launcher,    // a program that ends by executing init_path inside the box
    init_itself  // no box: mechad-init is started directly
};

struct BoxPlan {
    // Who makes the box. Never deduced from a missing path: an absent launcher is a failure.
    Maker maker = Maker::launcher;
    std::string launcher;  // absolute path, with Maker::launcher
    // Handed over by `--args FD`, never on a command line. No user text may stand where an
    // option is expected: workspaces and binds are always the operand of a *-bind-fd option.
    std::vector<PlanWord> options;
    std::string init_path;  // of mechad-init inside the box
    std::string passwd;     // contents of the generated files; empty: none
    std::string group;
    // Namespaces that must differ from the daemon's, in init's own report, for this run.
    std::vector<init_wire::Namespace> own_namespaces;
    Hardening hardening;
    bool operator==(const BoxPlan&) const = default;
};

}  // namespace mechad
