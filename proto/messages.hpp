// SPDX-License-Identifier: MIT
// The messages of protocol v1 as plain values. PROTOCOL.md says what they mean; codec.hpp turns
// them into lines and back. Strings named `*_bytes` or documented as bytes may hold any byte but
// NUL; all others are UTF-8.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proto/result.hpp"

namespace mechad {

inline constexpr int protocol_version = 1;

// Limits of one client line; the codec refuses what is larger before anything is done.
inline constexpr std::size_t request_line_bytes_max = std::size_t{1} << 20;  // without the LF
inline constexpr std::size_t daemon_line_bytes_max = std::size_t{64} << 10;  // of output, with LF
inline constexpr std::size_t json_depth_max = 16;
inline constexpr std::size_t argv_count_max = 4096;
inline constexpr std::size_t env_count_max = 1024;
// execve(2): one argument or environment string is limited to 32 pages, its NUL included
// (MAX_ARG_STRLEN). An env string is NAME=value.
inline constexpr std::size_t exec_string_bytes_max = std::size_t{128} << 10;
inline constexpr std::size_t label_bytes_max = 256;
inline constexpr std::size_t request_id_bytes_max = 256;  // of a string id
inline constexpr std::size_t run_bytes_max = 64;          // of a run's name
inline constexpr std::chrono::milliseconds timeout_max = std::chrono::hours(24 * 365);

using RequestId = std::variant<std::int64_t, std::string>;

// --- client to daemon -------------------------------------------------------------------------

struct StdinNull {
    bool operator==(const StdinNull&) const = default;
};
struct StdinStream {
    bool operator==(const StdinStream&) const = default;
};
struct StdinInline {
    std::string bytes;  // any byte, NUL too
    bool operator==(const StdinInline&) const = default;
};
using StdinSpec = std::variant<StdinNull, StdinStream, StdinInline>;

enum class StdioMode { stream, fds };
enum class OnOutputLimit { truncate, kill };

struct SpawnParams {
    std::optional<std::string> command;            // bytes; exactly one of command and argv
    std::optional<std::vector<std::string>> argv;  // bytes; never empty, argv[0] never empty
    std::string workspace;                         // bytes
    std::optional<std::string> cwd;                // bytes; absent = the workspace
    std::optional<bool> network;                   // absent = policy
    std::vector<std::pair<std::string, std::string>> env;  // names unique; values are bytes
    StdinSpec stdin_spec;
    StdioMode stdio = StdioMode::stream;
    bool tty = false;
    std::optional<std::chrono::milliseconds> timeout;  // > 0
    std::optional<std::uint64_t> output_limit_bytes;   // per stream
    OnOutputLimit on_output_limit = OnOutputLimit::truncate;
    std::string label;  // shown by list and status

    bool operator==(const SpawnParams&) const = default;
};

// What would such a spawn be told? `spawn` has neither command nor argv.
struct DescribeParams {
    SpawnParams spawn;
    bool operator==(const DescribeParams&) const = default;
};

struct StatusParams {
    bool operator==(const StatusParams&) const = default;
};
struct RecheckParams {
    bool operator==(const RecheckParams&) const = default;
};
struct ListParams {
    bool recent = false;  // ended runs, too
    bool operator==(const ListParams&) const = default;
};
struct KillParams {
    std::string run;
    std::optional<int> signal;  // absent = end the run: TERM, grace, KILL
    bool operator==(const KillParams&) const = default;
};

struct Call {
    RequestId id;
    std::variant<SpawnParams, DescribeParams, StatusParams, RecheckParams, ListParams, KillParams>
        params;
    bool operator==(const Call&) const = default;
};

// Notifications that a client may send once its spawn was accepted.
struct StdinMessage {
    std::string bytes;  // any byte, NUL too; empty when `eof`
    bool eof = false;
    bool operator==(const StdinMessage&) const = default;
};
struct SignalMessage {
    int signal = 0;
    bool operator==(const SignalMessage&) const = default;
};

using ClientMessage = std::variant<Call, StdinMessage, SignalMessage>;

// --- daemon to client -------------------------------------------------------------------------

enum class Egress { none, chosen };

// What an agent's interlock acts on. Only egress ever narrows.
struct Capabilities {
    bool private_data = true;
    bool untrusted_input = false;
    Egress egress = Egress::chosen;
    bool destructive = true;
    bool can_reach_network = true;
    bool reaches_beyond_workspace = true;
    bool operator==(const Capabilities&) const = default;
};

// One row of the closed claims table (PROTOCOL.md, "Claims"): a key, its value and the probes of
// preflight that prove it together. A key that nothing proved is absent.
struct Claim {
    std::string key;
    std::string value;
    std::vector<std::string> proofs;  // in a status; not repeated for each run
    bool operator==(const Claim&) const = default;
};
using Claims = std::vector<Claim>;

// What is said of the box of one run.
struct BoxReport {
    std::string backend;
    bool confined = false;
    bool network = false;
    Claims claims;
    Capabilities capabilities;
    std::vector<std::string> notes;
    bool operator==(const BoxReport&) const = default;
};

struct Started {
    std::string run;
    std::int64_t pid = 0;  // of the command, in the daemon's pid namespace
    BoxReport box;
    bool operator==(const Started&) const = default;
};

enum class Access { read_only, read_write };

struct BoundPath {
    std::string path;  // bytes
    Access access = Access::read_only;
    bool operator==(const BoundPath&) const = default;
};

struct DescribeReport {
    BoxReport box;
    std::vector<BoundPath> binds;  // in mount order; the last is the workspace
    bool operator==(const DescribeReport&) const = default;
};

enum class OutputStream { out, err };  // "stdout", "stderr" on the wire

struct Output {
    OutputStream stream = OutputStream::out;
    std::string bytes;  // any byte, NUL too
    bool operator==(const Output&) const = default;
};

struct Changed {
    Capabilities capabilities;
    std::string because;
    bool operator==(const Changed&) const = default;
};

enum class EndReason {
    exited,
    signaled,
    timeout,
    oom,
    output_limit,
    killed,
    cancelled,
    daemon_stopping,
    unrecognized  // never sent; of a daemon that said none, or one of a later version
};

// What is left of the command's process tree when the result is sent.
enum class TreeState { empty, kill_pending };

struct Usage {
    std::chrono::milliseconds wall{0};  // from exec to the end of the main process
    std::chrono::milliseconds cpu{0};   // user + system, of the main process and what it reaped
    std::int64_t max_rss_kb = 0;        // KiB
    bool operator==(const Usage&) const = default;
};

struct ExitReport {
    int exit_code = 0;    // valid when exit_signal is 0
    int exit_signal = 0;  // the signal that ended the main process, or 0
    EndReason reason = EndReason::exited;
    Capabilities capabilities;  // the worst over the run's life
    TreeState tree = TreeState::empty;
    bool truncated_stdout = false;
    bool truncated_stderr = false;
    std::uint64_t stdout_bytes = 0;  // all that the command wrote, delivered or not
    std::uint64_t stderr_bytes = 0;
    Usage usage;
    std::vector<std::string> hints;
    std::vector<std::string> notes;
    bool operator==(const ExitReport&) const = default;
};

struct RunSummary {
    std::string run;
    std::int64_t pid = 0;
    std::string label;
    std::string workspace;  // bytes, as admitted
    bool network = false;
    Egress egress = Egress::chosen;
    std::chrono::milliseconds age{0};
    std::uint64_t stdout_bytes = 0;
    std::uint64_t stderr_bytes = 0;
    bool operator==(const RunSummary&) const = default;
};

enum class ProbeVerdict { proved, leak, broken };

struct ProbeReport {
    std::string name;
    ProbeVerdict verdict = ProbeVerdict::broken;
    std::string detail;
    bool operator==(const ProbeReport&) const = default;
};

enum class PreflightState { running, passed, failed };

struct PreflightReport {
    PreflightState state = PreflightState::running;
    std::string reason;  // of a failure, with the remedy; empty otherwise
    std::string remedy;
    std::int64_t finished_unix_s = 0;  // 0 while running
    std::vector<ProbeReport> probes;
    bool operator==(const PreflightReport&) const = default;
};

// What bounds every run, whatever a request says.
struct RunLimits {
    std::optional<std::chrono::milliseconds> timeout;  // no limit when empty
    std::optional<std::uint64_t> output_limit_bytes;   // of each stream; no limit when empty
    std::optional<std::uint64_t> tmp_mb;  // of each private tmpfs, MiB; empty: there is none
    std::chrono::milliseconds kill_grace{0};
    bool operator==(const RunLimits&) const = default;
};

struct StatusReport {
    std::string version;
    std::vector<std::string> features;
    std::string backend;
    std::string backend_version;  // of the launcher; empty for none
    bool confined = false;
    bool network = false;  // of a spawn without override
    std::string network_override;
    Claims claims;              // of a spawn without override
    Capabilities capabilities;  // of a spawn without override
    PreflightReport preflight;
    std::uint64_t runs_active = 0;
    std::uint64_t runs_max = 0;
    RunLimits limits;
    std::string policy_digest;
    std::string config_path;  // empty: built-in defaults
    std::string socket_path;
    std::vector<std::string> env_absent;  // names in `env` that the daemon's environment lacks
    std::vector<std::string> notes;
    bool operator==(const StatusReport&) const = default;
};

// A run whose result was made: what is remembered of it.
struct EndedRun {
    std::string run;
    std::string label;
    std::string workspace;  // bytes, as admitted
    bool network = false;
    Egress egress = Egress::chosen;  // the widest over its life
    int exit_code = 0;               // valid when exit_signal is 0
    int exit_signal = 0;
    EndReason reason = EndReason::exited;
    std::chrono::milliseconds ended_ago{0};
    bool operator==(const EndedRun&) const = default;
};

struct ListReport {
    std::vector<RunSummary> runs;
    std::optional<std::vector<EndedRun>> recent = {};  // the last to end first; absent: not asked
    bool operator==(const ListReport&) const = default;
};
struct KillReport {
    std::string run;
    bool operator==(const KillReport&) const = default;
};

}  // namespace mechad
