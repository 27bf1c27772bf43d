// SPDX-License-Identifier: MIT
#include "daemon/start_environment.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "daemon/os/path_gate.hpp"
#include "daemon/os/unix_socket.hpp"

namespace mechad {

namespace fs = std::filesystem;

namespace {

std::string choose_socket(const Environment& environment, const os::HostFacts& host,
                          const std::optional<std::string>& option, const Config& config) {
    if (option) return *option;
    if (config.daemon.socket) return *config.daemon.socket;
    return os::find_socket_path({.named = value_of(environment, "MECHAD_SOCKET"),
                                 .runtime_dir = value_of(environment, "XDG_RUNTIME_DIR"),
                                 .uid = host.uid});
}

// The home of the passwd entry, by its canonical name and as it is written; and $HOME, when that is
// another directory of this user.
Homes find_homes(const Environment& environment, const os::HostFacts& host) {
    Homes homes;
    if (!host.home.empty()) homes.paths.push_back(host.home);
    const auto written = os::clean_path(host.home_as_written);
    if (!host.home.empty() && written && *written != host.home) homes.paths.push_back(*written);
    std::error_code error;
    const fs::path named = fs::canonical(value_of(environment, "HOME"), error);
    struct stat found {};
    // "/" is what containers say when there is none.
    if (error || named == host.home || named == named.root_path()) return homes;
    const bool is_usable = ::stat(named.c_str(), &found) == 0 && found.st_uid == host.uid &&
                           ::access(named.c_str(), W_OK | X_OK) == 0;
    if (is_usable) homes.paths.push_back(named);
    homes.has_unusable = !is_usable;
    return homes;
}

}  // namespace

Environment take_environment() {
    Environment taken;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const auto equals = text.find('=');
        if (equals != std::string::npos && equals > 0) {
            taken.emplace(text.substr(0, equals), text.substr(equals + 1));
        }
        ::explicit_bzero(*entry, text.size());
    }
    (void)::clearenv();  // NOLINT(concurrency-mt-unsafe): the only thread, by contract
    return taken;
}

std::string value_of(const Environment& environment, const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
}

OwnPlaces Places::own() const {
    OwnPlaces own;
    own.paths = {fs::path(socket).parent_path(), fs::path(init_binary).parent_path(),
                 fs::path(program), state, config_home};
    if (!config_path.empty()) own.paths.push_back(config_path);
    return own;
}

Result<Places> find_places(const Environment& environment, const os::HostFacts& host,
                           const std::optional<std::string>& socket_option, const Config& config) {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (error) return Error(ErrorKind::internal, "cannot find mechad's own program");
    const fs::path helpers = program.parent_path().parent_path() / "libexec" / "mechad";

    Places places;
    places.program = program;
    places.init_binary = helpers / "mechad-init";
    places.probe_binary = helpers / "mechad-probe";
    for (const auto& helper : {places.init_binary, places.probe_binary}) {
        if (::access(helper.c_str(), X_OK) == 0) continue;
        return Error(ErrorKind::internal, helper + " is missing or cannot be executed", {},
                     "install mechad completely");
    }
    places.socket = choose_socket(environment, host, socket_option, config);
    const std::string home = host.home.empty() ? value_of(environment, "HOME") : host.home;
    const std::string cache = value_of(environment, "XDG_CACHE_HOME");
    places.homes = find_homes(environment, host);
    places.state = (cache.empty() ? home + "/.cache" : cache) + "/mechad";
    const std::string config_base = value_of(environment, "XDG_CONFIG_HOME");
    places.config_home = (config_base.empty() ? home + "/.config" : config_base) + "/mechad";
    places.config_path = config.path;
    return places;
}

}  // namespace mechad
