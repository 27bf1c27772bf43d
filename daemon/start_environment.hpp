// SPDX-License-Identifier: MIT
// What the process was born with: its environment, and where its own files are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/config.hpp"
#include "daemon/os/host_facts.hpp"
#include "daemon/policy.hpp"

namespace mechad {

// A copy of the environment. The original is wiped, so that /proc/PID/environ holds nothing, and
// is empty afterwards. Call once, before any thread is started.
Environment take_environment();

std::string value_of(const Environment& environment, const std::string& name);

struct Homes {
    std::vector<std::string> paths;  // under each name, existing; the first is passwd's
    bool has_unusable = false;       // $HOME is another directory, where nothing can be planted
};

struct Places {
    std::string socket;
    std::string init_binary;   // mechad-init
    std::string probe_binary;  // mechad-probe
    std::string program;       // mechad itself
    Homes homes;
    std::string state;        // ${XDG_CACHE_HOME:-~/.cache}/mechad
    std::string config_path;  // empty: built-in defaults
    std::string config_home;  // where the user's config.toml would be

    OwnPlaces own() const;
};

// mechad-init and mechad-probe lie in ../libexec/mechad as seen from mechad.
Result<Places> find_places(const Environment& environment, const os::HostFacts& host,
                           const std::optional<std::string>& socket_option, const Config& config);

}  // namespace mechad
