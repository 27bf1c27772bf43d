// SPDX-License-Identifier: MIT
// Decides what a request may have. The only maker of a Box: backends accept nothing else, so
// every run has passed these checks. Fixed for the life of the process.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/command_rules.hpp"
#include "daemon/config.hpp"
#include "daemon/os/host_facts.hpp"
#include "daemon/os/path_gate.hpp"
#include "daemon/place_gate.hpp"
#include "proto/messages.hpp"

namespace mechad {

// A directory as it was admitted: the path had no symlink in it, every check was made on `fd`
// (O_PATH), and the same descriptor goes to the backend.
using Directory = os::Place;

// A `readable` or `writable` entry; a directory or a regular file, held open since start.
struct ExtraBind {
    Directory place;
    Access access = Access::read_only;
    bool is_directory = true;
};

// Everything that decides confinement, and nothing of what runs in it.
class Box {
public:
    class Key {
        Key() = default;
        friend class Policy;
    };
    struct Parts {
        BackendKind backend = BackendKind::none;
        Directory workspace;
        // Owned by the Policy, which outlives every Box.
        const std::vector<ExtraBind>* extra_binds = nullptr;
        bool network = false;
        std::uint64_t tmp_bytes = 0;
    };
    Box(Key, Parts parts) : parts_(std::move(parts)) {}

    BackendKind backend() const { return parts_.backend; }
    const Directory& workspace() const { return parts_.workspace; }
    // Readable entries first, then writable ones by depth: the order in which they are mounted.
    const std::vector<ExtraBind>& extra_binds() const { return *parts_.extra_binds; }
    bool network() const { return parts_.network; }
    std::uint64_t tmp_bytes() const { return parts_.tmp_bytes; }  // of each private tmpfs

private:
    Parts parts_;
};

// What runs in a box.
struct Command {
    std::vector<std::string> argv;  // bytes
    std::vector<std::string> env;   // NAME=value; the whole environment of the command
    std::string cwd;                // relative to the workspace, "." for itself; never ".."
    StdinSpec stdin_spec;
    std::optional<std::chrono::milliseconds> timeout;
    std::optional<std::uint64_t> output_limit_bytes;
    OnOutputLimit on_output_limit = OnOutputLimit::truncate;
    std::string label;
};

struct Admission {
    Box box;
    Command command;
};

class Policy {
public:
    // Opens and checks every `readable`, `writable` and `workspaces` entry and remembers the
    // forbidden places. An error has kind invalid_request and names the config key.
    static Result<std::unique_ptr<Policy>> make(Config config, const os::HostFacts& host,
                                                const OwnPlaces& own, const Environment& inherited);

    // Never touches the command's file system view beyond the workspace path; runs nothing.
    Result<Admission> admit(const SpawnParams& request);

    // As admit, for preflight: the scratch workspace lies in mechad's own state directory, and
    // the network setting and the limits are taken as they are. Never reachable from a request.
    Result<Admission> admit_probe(const SpawnParams& request);

    // Why a clean path would be refused as `readable` or `writable`, by its text alone, as a
    // clause. nullopt is no promise: the place itself was not looked at.
    std::optional<std::string> find_entry_fault(const std::string& path) const {
        return gate_.find_fault_by_text(path);
    }

    const Config& config() const { return config_; }
    const std::vector<ExtraBind>& extra_binds() const { return binds_; }
    // Names in `env` that the daemon's environment lacks.
    const std::vector<std::string>& absent_env() const { return absent_env_; }

private:
    Policy(Config config, PlaceGate gate);

    Result<void> open_entries();
    Result<void> check_mount_points();
    Result<void> open_binds(const std::vector<std::string>& paths, Access access,
                            std::string_view key);
    Result<void> check_nesting() const;
    void choose_environment(const Environment& inherited);

    Result<Admission> admit_from(const SpawnParams& request, Asker asker);
    Result<Directory> admit_workspace(const std::string& path, Asker asker);
    Result<void> check_workspace(const Directory& workspace, Asker asker) const;
    Result<bool> admit_network(std::optional<bool> wanted, Asker asker) const;
    Environment environment_for(const Directory& workspace) const;

    Config config_;
    PlaceGate gate_;
    std::vector<ExtraBind> binds_;        // in the order of Box::extra_binds()
    std::vector<std::string> bind_keys_;  // "sandbox.readable[0]", parallel to binds_
    std::vector<os::Place> workspaces_;
    Environment base_env_;    // under none: what is kept of the daemon's own
    Environment config_env_;  // `env`, with the passed-through values as they were at start
    std::vector<std::string> absent_env_;
};

}  // namespace mechad
