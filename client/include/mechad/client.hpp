// SPDX-License-Identifier: MIT
// The client library of mechad: asks a daemon to run commands in boxes. It starts no process and
// no thread, installs no signal handler, and never runs a command itself when the daemon is
// missing or refuses. Every failure is an Error (error.hpp); PROTOCOL.md is the reference for what
// the daemon does.
//
//     mechad::client::Client mechad;
//     const auto done = mechad.run({.argv = {"make", "test"}, .workspace = "/home/u/proj"});
//     return done.exit.code;
#pragma once

#include <cstddef>
#include <mechad/error.hpp>
#include <mechad/export.hpp>
#include <mechad/reports.hpp>
#include <mechad/request.hpp>
#include <mechad/run.hpp>
#include <mechad/time.hpp>
#include <optional>
#include <string>
#include <vector>

namespace mechad::client {

struct CollectOptions {
    std::size_t bytes_max = std::size_t{16} << 20;  // of each of stdout and stderr
    Time until = never;
};

// What Client::run gathered.
struct Collected {
    Started started;
    std::string stdout_bytes;
    std::string stderr_bytes;
    // Whether bytes beyond CollectOptions::bytes_max were dropped; what the daemon left out at
    // SpawnRequest::output_limit_bytes is told in `exit`.
    bool is_stdout_cut = false;
    bool is_stderr_cut = false;
    std::vector<Changed> changes;
    ExitReport exit;
};

// Where a daemon is. Holds no connection: each call makes its own, so that a Client may be copied,
// and used by several threads at once. Every call waits for the daemon, at most until `until`
// (Error deadline), and refuses to talk to a server of another user (Error untrusted_server).
class MECHAD_CLIENT_EXPORT Client {
public:
    // By the environment, as PROTOCOL.md says: $MECHAD_SOCKET, $XDG_RUNTIME_DIR/mechad/mechad.sock,
    // /run/user/UID/mechad/mechad.sock. Read once, now.
    Client();
    explicit Client(std::string socket_path);

    const std::string& socket_path() const { return socket_path_; }

    // Runs a command to its end and gathers its output. Past options.bytes_max the rest is
    // received and dropped: the command is neither slowed down nor ended. When the time passes
    // the run is cancelled, and what was gathered is lost (Error deadline). StreamedInput is
    // refused (invalid_request): nobody could write it.
    Collected run(const SpawnRequest& request, const CollectOptions& options = {}) const;

    // Asks for a run and returns when the daemon has been asked; next() of the Run tells whether
    // it was started or refused.
    Run spawn(const SpawnRequest& request, Time until = never) const;

    // What such a run would be told, or its refusal; starts nothing. The program and the input of
    // the request are not looked at.
    Description describe(const SpawnRequest& request, Time until = never) const;

    Status status(Time until = never) const;

    // Proves the sandbox again; answers when that has ended.
    Preflight recheck(Time until = never) const;

    // The runs that are alive.
    std::vector<RunSummary> list(Time until = never) const;
    // The last that ended, the last one first: of a daemon with the feature "list:recent".
    std::vector<EndedRun> list_recent(Time until = never) const;

    // Ends a run as a cancel would, or only sends it a signal. Returns when that was carried out,
    // not when the run has ended. Error no_such_run when it is over already.
    void kill(const std::string& run, std::optional<int> signal = {}, Time until = never) const;

private:
    std::string socket_path_;
};

}  // namespace mechad::client
