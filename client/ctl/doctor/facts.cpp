// SPDX-License-Identifier: MIT
#include "client/ctl/doctor/facts.hpp"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "client/ctl/ask.hpp"
#include "client/ctl/doctor/check_run.hpp"
#include "client/ctl/doctor/scratch_config.hpp"
#include "client/environment.hpp"
#include "daemon/os/namespace_facts.hpp"
#include "daemon/os/syscalls.hpp"
#include "daemon/os/trusted_path.hpp"
#include "daemon/os/unix_socket.hpp"

namespace mechad::ctl {

namespace fs = std::filesystem;

namespace {

constexpr int exit_bad_config = 78;  // of mechad
constexpr mode_t others_bits = 0077;
constexpr std::size_t small_file_bytes_max = 4096;
// For all preflights together. Each has deadlines of its own for every step; this is for one that
// hangs all the same.
constexpr std::chrono::seconds checks_deadline{120};

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

bool is_file(const std::string& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
}

// What mechad asks of the place before it binds there.
std::string find_way_problem(const std::string& path, const fs::path& directory) {
    if (path.empty() || path.front() != '/') return "the socket path must be absolute: " + path;
    if (path.size() > os::socket_path_bytes_max - os::fresh_socket_suffix.size()) {
        return "the socket path is too long: " + path;
    }
    const std::string parent = directory.parent_path();
    if (const auto way = os::check_trusted_path(parent); !way) return way.error().message();
    struct stat found {};
    if (::lstat(directory.c_str(), &found) == 0) return {};
    if (errno != ENOENT) return "cannot look at " + directory.string();
    if (::access(parent.c_str(), W_OK | X_OK) == 0) return {};
    return directory.string() + " is not there and cannot be made";
}

SocketFacts look_at_socket(const std::string& path) {
    SocketFacts facts{.path = path};
    const fs::path directory = fs::path(path).parent_path();
    facts.way_problem = find_way_problem(path, directory);
    struct stat found {};
    if (::lstat(directory.c_str(), &found) == 0) {
        facts.has_directory = true;
        facts.is_private = S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
                           (found.st_mode & others_bits) == 0;
    }
    if (::lstat(path.c_str(), &found) == 0) {
        facts.exists = true;
        facts.mode = found.st_mode;
        facts.is_ours = S_ISSOCK(found.st_mode) && found.st_uid == ::geteuid();
    }
    return facts;
}

void ask_daemon(DoctorFacts& facts) {
    auto answer = ask(facts.socket.path, StatusParams{}, decode_status_report);
    if (answer) {
        facts.daemon = std::move(answer->report);
        return;
    }
    facts.daemon_problem = answer.error().message();
    facts.daemon_remedy = answer.error().hint();
}

// systemd.unit(5), "User Unit Search Path", and where `enable` puts its links.
UnitFacts look_at_unit(uid_t uid, const std::string& home, const std::string& user) {
    const std::string config_base = environment_value("XDG_CONFIG_HOME");
    const std::string data_base = environment_value("XDG_DATA_HOME");
    const std::string config_home = config_base.empty() ? home + "/.config" : config_base;
    const std::string own = config_home + "/systemd/user";
    const std::string data =
        (data_base.empty() ? home + "/.local/share" : data_base) + "/systemd/user";
    UnitFacts facts{.config = config_home + "/mechad/config.toml", .user = user};
    facts.has_config = exists(facts.config);
    for (const std::string& place :
         {own, std::string("/etc/systemd/user"), data, std::string("/usr/local/lib/systemd/user"),
          std::string("/usr/lib/systemd/user")}) {
        const std::string unit = place + "/mechad.socket";
        // The first that is found counts, also when it is a link to nothing, which masks it.
        if (facts.socket_unit.empty() && !facts.is_masked && exists(unit)) {
            if (is_file(unit)) facts.socket_unit = unit;
            facts.is_masked = !is_file(unit);
        }
        facts.is_enabled =
            facts.is_enabled || is_file(place + "/sockets.target.wants/mechad.socket");
    }
    const std::string runtime = environment_value("XDG_RUNTIME_DIR");
    facts.has_manager = exists((runtime.empty() ? "/run/user/" + std::to_string(uid) : runtime) +
                               "/systemd/private");
    facts.lingers = exists("/var/lib/systemd/linger/" + user);
    return facts;
}

DelegationFacts look_at_delegation(uid_t uid) {
    const std::string number = std::to_string(uid);
    const std::string below = "/user.slice/user-" + number + ".slice/user@" + number + ".service";
    DelegationFacts facts;
    // The second is where a hybrid hierarchy has its version 2.
    for (const std::string root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
        const auto text = os::read_file(root + below + "/cgroup.controllers", small_file_bytes_max);
        if (!text) continue;
        facts.directory = root + below;
        facts.is_ours = ::access(facts.directory.c_str(), W_OK) == 0;
        std::istringstream words(*text);
        for (std::string word; words >> word;) facts.controllers.push_back(word);
        break;
    }
    return facts;
}

void run_checks(DoctorFacts& facts) {
    const auto deadline = std::chrono::steady_clock::now() + checks_deadline;
    facts.configured = run_check(facts.program, "", {}, deadline);
    // The other kinds are to be known although the configuration is wrong.
    std::vector<std::string> options;
    ScratchConfig defaults;
    if (facts.configured.exit_code == exit_bad_config) {
        options = {"--config", defaults.path()};
    }
    for (const std::string kind : {"bwrap", "docker", "landlock", "none"}) {
        const auto& known = facts.configured.status;
        if (known && known->backend == kind) {
            facts.kinds.push_back(facts.configured);
            facts.kinds.back().kind = kind;
        } else {
            facts.kinds.push_back(run_check(facts.program, kind, options, deadline));
        }
    }
}

}  // namespace

DoctorFacts gather_facts(const std::string& socket_path) {
    DoctorFacts facts;
    facts.uid = ::geteuid();
    std::string home = environment_value("HOME");
    std::string user = std::to_string(facts.uid);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
    if (const passwd* entry = ::getpwuid(facts.uid); entry != nullptr) {
        home = entry->pw_dir;
        user = entry->pw_name;
    }
    std::error_code error;
    facts.program = fs::read_symlink("/proc/self/exe", error).parent_path() / "mechad";
    facts.is_program = ::access(facts.program.c_str(), X_OK) == 0;
    if (facts.is_program) run_checks(facts);
    facts.socket = look_at_socket(socket_path);
    ask_daemon(facts);
    facts.unit = look_at_unit(facts.uid, home, user);
    facts.delegation = look_at_delegation(facts.uid);
    facts.container = os::gather_namespace_facts().container;
    return facts;
}

}  // namespace mechad::ctl
