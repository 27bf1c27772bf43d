// SPDX-License-Identifier: MIT
// What the daemon says. A member that it left out, or that this version does not understand, reads
// as the least that could be true: egress "chosen", access "read_write", preflight "failed", no
// claim. Strings are UTF-8 unless said to be bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mechad::client {

// --- of a box -----------------------------------------------------------------------------------

enum class Egress {
    none,   // no byte that the command chooses leaves the machine
    chosen  // it may
};

// What an agent's interlock acts on.
struct Capabilities {
    bool private_data = true;
    bool untrusted_input = false;
    Egress egress = Egress::chosen;
    bool destructive = true;
    bool can_reach_network = true;
    bool reaches_beyond_workspace = true;
    bool operator==(const Capabilities&) const = default;
};

// Something that was proved about the box, as PROTOCOL.md, "Claims", lists it: "home" is "hidden".
// A key that is absent was not proved, and nothing is said of it.
struct Claim {
    std::string key;
    std::string value;
    std::vector<std::string> proofs;  // probes that prove it together; in a Status only
    bool operator==(const Claim&) const = default;
};

struct Box {
    std::string backend;
    bool confined = false;
    bool network = true;  // open
    std::vector<Claim> claims;
    Capabilities capabilities;
    std::vector<std::string> notes;  // sentences for people
    bool operator==(const Box&) const = default;
};

// --- events of a run, in the order in which they can come ---------------------------------------

// First, and once: exec has succeeded.
struct Started {
    std::string run;       // its name for Client::kill
    std::int64_t pid = 0;  // in the daemon's pid namespace; may name another process when it ended
    Box box;
    bool operator==(const Started&) const = default;
};

enum class Stream { out, err };

// The bytes of one stream, in order, are exactly those that the command wrote.
struct Output {
    Stream stream = Stream::out;
    std::string bytes;
    bool operator==(const Output&) const = default;
};

// Something outside lowered what was said in Started.
struct Changed {
    Capabilities capabilities;  // from now on
    std::string because;
    bool operator==(const Changed&) const = default;
};

enum class EndReason {
    exited,           // the main process ended by itself
    signaled,         // by a signal that the daemon did not send to end the run
    timeout,          // SpawnRequest::timeout
    oom,              // the memory limit
    output_limit,     // with AtOutputLimit::kill
    killed,           // Client::kill without a signal
    cancelled,        // the client went away
    daemon_stopping,  // the daemon was told to stop
    unrecognized,     // not said, or of a later version
};

enum class Tree {
    empty,        // no process of the run is left
    kill_pending  // killed, and one has not died yet
};

struct ExitReport {
    int code = 0;    // 0 to 255, when `signal` is 0
    int signal = 0;  // what ended the main process, or 0
    EndReason reason = EndReason::exited;
    Capabilities capabilities;  // the widest that held at any time
    Tree tree = Tree::kill_pending;
    bool is_stdout_truncated = false;  // at SpawnRequest::output_limit_bytes
    bool is_stderr_truncated = false;
    std::uint64_t stdout_bytes = 0;  // all that the command wrote, delivered or not
    std::uint64_t stderr_bytes = 0;
    std::chrono::milliseconds wall{0};  // from exec to the end of the main process
    std::chrono::milliseconds cpu{0};
    std::int64_t rss_kib_max = 0;
    std::vector<std::string> hints;
    std::vector<std::string> notes;
    bool operator==(const ExitReport&) const = default;
};

// Last, and once. ExitReport is what there is to say.
using Ended = ExitReport;

using Event = std::variant<Started, Output, Changed, Ended>;

// --- answers to questions -----------------------------------------------------------------------

enum class Access { read_only, read_write };

struct Bind {
    std::string path;  // bytes
    Access access = Access::read_write;
    bool operator==(const Bind&) const = default;
};

struct Description {
    Box box;
    std::vector<Bind> binds;  // in the order of mounting; the last is the workspace
    bool operator==(const Description&) const = default;
};

enum class ProbeVerdict { proved, leak, broken };

struct Probe {
    std::string name;
    ProbeVerdict verdict = ProbeVerdict::broken;
    std::string detail;
    bool operator==(const Probe&) const = default;
};

enum class PreflightState { running, passed, failed };

struct Preflight {
    PreflightState state = PreflightState::failed;
    std::string reason;  // of a failure
    std::string remedy;
    std::int64_t finished_unix_s = 0;  // 0 while it runs
    std::vector<Probe> probes;
    bool operator==(const Preflight&) const = default;
};

// What bounds every run, whatever a request says; nothing does where a value is absent.
struct Limits {
    std::optional<std::chrono::milliseconds> timeout = {};
    std::optional<std::uint64_t> output_limit_bytes = {};  // of each of stdout and stderr
    std::optional<std::uint64_t> tmp_mib = {};             // of each private file system in memory
    std::chrono::milliseconds kill_grace{0};               // from SIGTERM to SIGKILL
    bool operator==(const Limits&) const = default;
};

struct Status {
    std::string version;
    std::vector<std::string> features;
    std::string backend_version;
    std::string network_override;  // "allow" or "narrow"
    // Of a run that asks for nothing in particular: its backend, network, claims with their proofs,
    // capabilities. The notes are the daemon's.
    Box box;
    Preflight preflight;
    std::uint64_t active_run_count = 0;
    std::uint64_t run_count_max = 0;
    Limits limits;
    std::string policy_digest;
    std::string config_path;  // empty: built-in defaults
    std::string socket_path;
    std::vector<std::string> absent_env;  // names that the policy passes on and nobody set
    bool operator==(const Status&) const = default;
};

struct RunSummary {
    std::string run;
    std::int64_t pid = 0;
    std::string label;
    std::string workspace;  // bytes
    bool network = true;
    Egress egress = Egress::chosen;
    std::chrono::milliseconds age{0};
    std::uint64_t stdout_bytes = 0;
    std::uint64_t stderr_bytes = 0;
    bool operator==(const RunSummary&) const = default;
};

struct EndedRun {
    std::string run;
    std::string label;
    std::string workspace;  // bytes
    bool network = true;
    Egress egress = Egress::chosen;  // the widest of its life
    int code = 0;                    // when `signal` is 0
    int signal = 0;
    EndReason reason = EndReason::exited;
    std::chrono::milliseconds ended_ago{0};
    bool operator==(const EndedRun&) const = default;
};

}  // namespace mechad::client
