// SPDX-License-Identifier: MIT
// The configuration file: what each key means, its default, and how a bad one is explained.
// Parsing touches no path that an entry names; Policy opens them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/result.hpp"

namespace mechad {

enum class BackendKind { none, bwrap, docker, landlock };
std::string_view to_string(BackendKind kind);
// The error is what a message goes on with after the key.
Result<BackendKind> find_kind(std::string_view word);

enum class NetworkOverride { allow, narrow };
std::string_view to_string(NetworkOverride rule);

struct EnvEntry {
    std::string name;
    std::optional<std::string> value;  // absent: passed through from the daemon's environment
    bool operator==(const EnvEntry&) const = default;
};

struct SandboxConfig {
    BackendKind kind = BackendKind::none;
    bool network = false;
    std::vector<std::string> writable;
    std::vector<std::string> readable;
    std::vector<EnvEntry> env;
    std::uint64_t tmp_mb = 1024;  // size of each private tmpfs, MiB
    bool submounts = false;
};

struct DaemonConfig {
    std::optional<std::string> socket;
    std::uint32_t runs_max = 256;
    std::chrono::seconds idle_exit{0};  // 0 = never; only when a service manager holds the socket
    std::chrono::milliseconds kill_grace{2000};
    std::optional<std::uint64_t> output_limit_bytes;  // per stream; absent = no limit
    std::optional<std::chrono::milliseconds> timeout;
    std::vector<std::string> workspaces;  // empty = anywhere the gate allows
    NetworkOverride network_override = NetworkOverride::allow;
};

struct Config {
    SandboxConfig sandbox;
    DaemonConfig daemon;
    std::string path;    // the file it came from; empty = built-in defaults
    std::string digest;  // identifies the effective policy; equal values give an equal digest
};

// The errors of this file have kind invalid_request, the dotted key in `field`, and a message
// that begins "NAME:LINE:COL: " and says what is allowed.
Result<Config> parse_config(std::string_view text, std::string_view name);

// Reads `path`: a regular file of at most 1 MiB that only this user or root can write. Absence is
// an error here: find_config decides.
Result<Config> load_config(const std::string& path);

struct ConfigSearch {
    std::optional<std::string> explicit_path;  // --config, or $MECHAD_CONFIG
    std::string xdg_config_home;               // may be empty
    std::string home;                          // of the passwd entry
};
// An explicit path must exist; otherwise $XDG_CONFIG_HOME (or ~/.config) /mechad/config.toml,
// then /etc/mechad/config.toml; nullopt = none exists, use the defaults. A candidate that exists
// and cannot be read is an error, never skipped.
Result<std::optional<std::string>> find_config(const ConfigSearch& search);

}  // namespace mechad
