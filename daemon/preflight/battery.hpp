// SPDX-License-Identifier: MIT
// The probes of preflight as data: what mechad-probe is asked, which answers a box that works
// gives, and what must have been seen outside meanwhile. Controls, which must succeed, stand
// beside denials, which must fail: a box that denies everything proves nothing. Pure.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "proto/messages.hpp"

namespace mechad {

enum class NetworkProbe { closed, open };
// Every probe is made in both boxes, and its name says in which: "tcp_listener_closed".
std::string_view suffix_of(NetworkProbe network);

// What was planted, and where. Secrets and marks are random bytes that occur nowhere else.
struct ProbeTargets {
    std::string token;   // left by the probe wherever it gets through
    std::string secret;  // in the home, in /tmp, in the witness, in IPC objects: never to be seen

    std::string nonce_path;  // in the workspace: to be read
    std::string nonce;
    std::string workspace_mark;              // in the workspace: to be written
    std::string orphan_mark;                 // likewise, by a process that stays behind
    std::vector<std::string> home_canaries;  // by each of their names; empty: there is no home
    bool has_unproved_home = false;          // there is one without a canary
    // "MAJOR:MINOR:PATH" (see home_mounts.hpp): what no mount of a box may show, hold or lie in,
    // and what it may, being planned.
    std::vector<std::string> home_mounts;
    std::vector<std::string> planned_mounts;
    std::vector<std::string> tmp_canaries;   // in the directories that a box has of its own
    bool has_unproved_tmp = false;           // there is one without a canary
    std::vector<std::string> tmp_marks;      // to be written there, and not to appear here
    std::vector<std::string> outside_marks;  // not to be written
    // Below the box's own temporary directories: may be written there, and not appear here.
    std::vector<std::string> shadowed_marks;
    std::string tcp;  // ADDRESS:PORT
    std::string udp;
    std::string unix_path;  // relative to the workspace
    std::string abstract_name;
    std::string own_socket;  // mechad's; empty: none is open
    pid_t witness = 0;
    std::string word;        // precedes the secret in argv and environment of the witness
    std::string control;     // follows the word in the probe's own environment
    int shared_memory = -1;  // negative: there is none to be had here
    std::string queue;       // empty: likewise
};

// What happened outside of the box, whatever the probe says.
struct Sightings {
    bool tcp_heard = false;
    bool udp_heard = false;
    bool path_heard = false;
    bool abstract_heard = false;
    bool own_socket_reached = false;
    bool witness_signalled = false;
    bool workspace_marked = false;
    bool tmp_marked = false;
    bool outside_marked = false;
    bool canaries_intact = false;
    bool orphan_marked = false;
    bool orphan_alive = false;
};

// What the probe answered, by check as it was asked: "ok DETAIL" or "errno N NAME".
using ProbeAnswers = std::map<std::string, std::string>;

struct Probe {
    std::string name;
    std::vector<std::string> checks;
    // The names of the errnos that this backend refuses with; empty: the checks must succeed.
    std::vector<std::string_view> refused_with = {};
    bool may_succeed = false;            // although refused_with is not empty
    std::string secret = {};             // in an answer: a leak
    std::string needs = {};              // in every answer that succeeds
    bool Sightings::*breach = nullptr;   // true: a leak
    bool Sightings::*control = nullptr;  // false: nothing was proved
    std::function<bool(std::string_view detail)> is_leak = nullptr;  // of one that succeeds
};

// Unconfined boxes are only asked for the controls.
std::vector<Probe> make_battery(const ProbeTargets& targets, NetworkProbe network,
                                bool is_confined);

std::vector<ProbeReport> judge(const std::vector<Probe>& battery, const ProbeAnswers& answers,
                               const Sightings& seen);

}  // namespace mechad
