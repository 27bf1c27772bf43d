// SPDX-License-Identifier: MIT
#include "daemon/policy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "daemon/os/printable.hpp"

namespace mechad {
namespace {

constexpr std::string_view boxed_path =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// What a command under none keeps of the daemon's environment.
constexpr std::array inherited_names = {"PATH", "HOME", "LANG", "LC_ALL", "TZ"};

constexpr std::string_view project_hint =
    "name a project directory, such as one below your home directory";
constexpr std::string_view entry_hint =
    "name a directory that holds what commands need, and no more";

// Every box has its own in place of the host's.
constexpr std::array made_files = {"/etc/passwd", "/etc/group"};

std::string lookup(const Environment& environment, const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
}

std::string key_of(std::string_view key, std::size_t index) {
    return std::string(key) + "[" + std::to_string(index) + "]";
}

// The same fault, of a config entry instead of a workspace.
Error entry_error(const Error& error, const std::string& key) {
    return Error(ErrorKind::invalid_request, key + ": " + error.message(), key, error.hint());
}

Error forbidden_error(const os::Place& place, const std::string& clause,
                      std::string_view hint = project_hint) {
    return Error(ErrorKind::bad_workspace,
                 os::printable(place.path) + " may not be given to a command: " + clause, {},
                 std::string(hint));
}

// Options and the environment may name mechad's own files by a relative path or through "..".
// One that is clean stays as it is: the links in it are forbidden as well as what they lead to.
Result<std::string> clean_own_path(const std::string& path) {
    if (auto clean = os::clean_path(path)) return clean;
    std::error_code error;
    auto absolute = std::filesystem::absolute(path.empty() ? "." : path, error);
    if (!error) absolute = std::filesystem::weakly_canonical(absolute, error);
    if (!error) return os::clean_path(absolute.string());
    return Error(ErrorKind::invalid_request,
                 os::printable(path) + " cannot be resolved: " + error.message());
}

bool is_readable_directory(const std::string& path) {
    struct stat found {};
    return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
           ::faccessat(AT_FDCWD, path.c_str(), R_OK | X_OK, AT_EACCESS) == 0;
}

// A request narrows what the configuration allows and never widens it.
template <class T>
std::optional<T> narrower(const std::optional<T>& requested, const std::optional<T>& configured) {
    if (!requested || !configured) return requested ? requested : configured;
    return std::min(*requested, *configured);
}

Result<void> check_available(const SpawnParams& request) {
    if (request.stdio == StdioMode::fds) {
        return Error(ErrorKind::invalid_request, "stdio \"fds\" is not available in this version",
                     "stdio", "use \"stream\"");
    }
    if (request.tty) {
        return Error(ErrorKind::invalid_request, "a tty is not available in this version", "tty",
                     "leave tty out");
    }
    return {};
}

}  // namespace

Policy::Policy(Config config, os::MountTable mounts, ForbiddenPlaces forbidden)
    : config_(std::move(config)), mounts_(std::move(mounts)), forbidden_(std::move(forbidden)) {}

Result<std::unique_ptr<Policy>> Policy::make(Config config, const os::HostFacts& host,
                                             const OwnPlaces& own, const Environment& inherited) {
    auto mounts = os::MountTable::make();
    if (!mounts) return mounts.error();
    auto forbidden = find_forbidden_places(host, lookup(inherited, "HOME"),
                                           lookup(inherited, "XDG_RUNTIME_DIR"));
    std::unique_ptr<Policy> policy(
        new Policy(std::move(config), *std::move(mounts), std::move(forbidden)));
    for (const std::string& path : own.paths) {
        const auto clean = clean_own_path(path);
        if (!clean) return clean.error();
        policy->own_.forbid_tree(*clean, "mechad's own " + os::printable(*clean));
    }
    if (auto followed = policy->follow_mounts(); !followed) return followed.error();
    policy->choose_environment(inherited);
    policy->show_system(host);
    if (auto opened = policy->open_entries(); !opened) return opened.error();
    return policy;
}

// Each mount is judged once, as a place of its own, and not again with every request.
Result<void> Policy::follow_mounts() {
    const auto is_new = mounts_.refresh();
    if (!is_new) return is_new.error();
    if (!*is_new) return {};
    forbidden_.locate(mounts_);
    own_.locate(mounts_);
    forbidden_mounts_.clear();
    for (const os::Mount& mount : mounts_.mounts()) {
        if (auto clause = find_fault(mount.shown)) {
            forbidden_mounts_[mount.point] = *std::move(clause);
        }
    }
    return {};
}

std::optional<std::string> Policy::find_fault(const os::Location& location) const {
    if (auto clause = forbidden_.find(location)) return clause;
    if (auto clause = own_.find(location)) return clause;
    return find_inherent_fault(location);
}

std::optional<std::string> Policy::find_fault(const os::Place& place, const os::Location& location,
                                              Origin origin) const {
    if (auto clause = forbidden_.find(place, location)) return clause;
    if (auto clause = find_credential_name(place.path)) return clause;
    if (auto clause = find_inherent_fault(location)) return clause;
    // Preflight's scratch workspace is one of mechad's own places.
    return origin == Origin::preflight ? std::nullopt : own_.find(place, location);
}

Result<os::Location> Policy::locate(const os::Place& place) const {
    if (auto location = mounts_.locate(place.path, place.mount)) return *std::move(location);
    return Error(ErrorKind::bad_workspace,
                 os::printable(place.path) + " is on no mount that mechad can see", {},
                 "try again if something was mounted or unmounted there just now");
}

Result<void> Policy::open_entries() {
    const SandboxConfig& sandbox = config_.sandbox;
    auto opened = open_binds(sandbox.readable, Access::read_only, "sandbox.readable");
    if (!opened) return opened;
    opened = open_binds(sandbox.writable, Access::read_write, "sandbox.writable");
    if (!opened) return opened;
    if (auto nesting = check_nesting(); !nesting) return nesting;
    if (auto points = check_mount_points(); !points) return points;

    const std::vector<std::string>& roots = config_.daemon.workspaces;
    for (std::size_t i = 0; i < roots.size(); ++i) {
        auto place = os::open_place(roots[i], os::PlaceType::directory);
        if (!place) return entry_error(place.error(), key_of("daemon.workspaces", i));
        workspaces_.push_back(*std::move(place));
    }
    return {};
}

// Appends the entries of one list in mount order: what holds another comes before it.
Result<void> Policy::open_binds(const std::vector<std::string>& paths, Access access,
                                std::string_view key) {
    struct Entry {
        ExtraBind bind;
        std::string key;
    };
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        const std::string name = key_of(key, i);
        auto place = os::open_place(paths[i], os::PlaceType::directory_or_file);
        if (!place) return entry_error(place.error(), name);
        const auto location = locate(*place);
        if (!location) return entry_error(location.error(), name);
        const auto clause = find_fault(*place, *location, Origin::client);
        if (clause) return entry_error(forbidden_error(*place, *clause, entry_hint), name);
        auto mounts = check_mounts(*place, ErrorKind::bad_workspace);
        if (!mounts) return entry_error(mounts.error(), name);
        const bool is_directory = place->is_directory;
        entries.push_back({{*std::move(place), access, is_directory}, name});
    }
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& one, const Entry& other) {
        return one.bind.place.lineage.size() < other.bind.place.lineage.size();
    });
    for (Entry& entry : entries) {
        binds_.push_back(std::move(entry.bind));
        bind_keys_.push_back(std::move(entry.key));
    }
    return {};
}

// A read-only entry below a writable one could be written through the latter. Of two entries for
// one place neither would be told from what the other shows already.
Result<void> Policy::check_nesting() const {
    for (std::size_t i = 0; i < binds_.size(); ++i) {
        for (std::size_t j = i + 1; j < binds_.size(); ++j) {
            if (binds_[i].place.id != binds_[j].place.id) continue;
            if (binds_[i].access != binds_[j].access) continue;  // told below
            return Error(ErrorKind::invalid_request,
                         bind_keys_[j] + ": " + os::printable(binds_[j].place.path) +
                             " is the same place as " + bind_keys_[i],
                         bind_keys_[j], "remove one of the two entries");
        }
    }
    for (std::size_t i = 0; i < binds_.size(); ++i) {
        for (std::size_t j = 0; j < binds_.size(); ++j) {
            if (binds_[i].access != Access::read_only || binds_[j].access != Access::read_write ||
                !os::lies_in(binds_[i].place, binds_[j].place.id)) {
                continue;
            }
            return Error(ErrorKind::invalid_request,
                         bind_keys_[i] + ": " + os::printable(binds_[i].place.path) + " lies in " +
                             bind_keys_[j] + ", which makes it writable",
                         bind_keys_[i], "remove one of the two entries");
        }
    }
    return {};
}

void Policy::show_system(const os::HostFacts& host) {
    if (config_.sandbox.kind == BackendKind::none) return;
    for (const os::SystemEntry& entry : host.system) {
        struct stat found {};
        if (!entry.link_target.empty() || ::stat(entry.path.c_str(), &found) != 0) continue;
        shown_.add(entry.path, {found.st_dev, found.st_ino});
        system_.push_back(entry.path);
    }
}

// Also lets workspaces see the readable entries as shown. An entry below a writable one is not
// mounted, so that only what is shown read-only counts.
Result<void> Policy::check_mount_points() {
    if (config_.sandbox.kind == BackendKind::none) return {};
    for (const ExtraBind& bind : binds_) {
        if (bind.access != Access::read_only || !bind.is_directory) continue;
        shown_.add(bind.place.path, bind.place.id);
    }
    for (std::size_t i = 0; i < binds_.size(); ++i) {
        const auto clause = shown_.find_fault(binds_[i].place);
        if (clause) {
            return entry_error(forbidden_error(binds_[i].place, *clause, entry_hint),
                               bind_keys_[i]);
        }
        const std::string& path = binds_[i].place.path;
        if (std::find(made_files.begin(), made_files.end(), path) == made_files.end()) continue;
        return Error(ErrorKind::invalid_request,
                     bind_keys_[i] + ": every box has a " + path + " of its own", bind_keys_[i],
                     "remove the entry");
    }
    return {};
}

void Policy::choose_environment(const Environment& inherited) {
    for (const char* const name : inherited_names) {
        const auto found = inherited.find(name);
        if (found != inherited.end()) base_env_.insert(*found);
    }
    for (const EnvEntry& entry : config_.sandbox.env) {
        const auto found = inherited.find(entry.name);
        if (entry.value) {
            config_env_[entry.name] = *entry.value;
        } else if (found != inherited.end()) {
            config_env_[entry.name] = found->second;
        } else {
            absent_env_.push_back(entry.name);
        }
    }
}

Result<Admission> Policy::admit(const SpawnParams& request) {
    return admit_from(request, Origin::client);
}

Result<Admission> Policy::admit_probe(const SpawnParams& request) {
    return admit_from(request, Origin::preflight);
}

// What can be judged by the request's text alone comes before any path is opened.
Result<Admission> Policy::admit_from(const SpawnParams& request, Origin origin) {
    if (auto available = check_available(request); !available) return available.error();
    auto argv = argv_of(request);
    if (!argv) return argv.error();
    const auto network = admit_network(request.network, origin);
    if (!network) return network.error();
    auto workspace = admit_workspace(request.workspace, origin);
    if (!workspace) return workspace.error();
    auto location = locate(*workspace);
    if (!location) return location.error().with_field("workspace");
    auto cwd = cwd_of(request.cwd, workspace->path);
    if (!cwd) return cwd.error();
    auto env = env_of(request, environment_for(*workspace));
    if (!env) return env.error();

    Command command{
        .argv = *std::move(argv),
        .env = *std::move(env),
        .cwd = *std::move(cwd),
        .stdin_spec = request.stdin_spec,
        .timeout = narrower(request.timeout, config_.daemon.timeout),
        .output_limit_bytes =
            narrower(request.output_limit_bytes, config_.daemon.output_limit_bytes),
        .on_output_limit = request.on_output_limit,
        .label = request.label,
    };
    Box box(Box::Key(), {
                            .backend = config_.sandbox.kind,
                            .workspace = *std::move(workspace),
                            .extra_binds = &binds_,
                            .network = *network,
                            .tmp_bytes = config_.sandbox.tmp_mb << 20,
                            .workspace_inside = std::move(location->path),
                        });
    return Admission{std::move(box), std::move(command)};
}

Result<Directory> Policy::admit_workspace(const std::string& path, Origin origin) {
    auto workspace = os::open_place(path, os::PlaceType::directory);
    if (!workspace) return workspace.error().with_field("workspace");
    if (auto followed = follow_mounts(); !followed) return followed.error();
    if (auto checked = check_workspace(*workspace, origin); !checked) {
        return checked.error().with_field("workspace");
    }
    if (auto mounts = check_mounts(*workspace, ErrorKind::bad_workspace); !mounts) {
        return mounts.error().with_field("workspace");
    }
    for (std::size_t i = 0; i < binds_.size(); ++i) {
        if (auto mounts = check_mounts(binds_[i].place, ErrorKind::policy_denied); !mounts) {
            return mounts.error().with_field(bind_keys_[i]);
        }
    }
    if (auto system = check_system_mounts(); !system) return system.error();
    return workspace;
}

Result<void> Policy::check_workspace(const Directory& workspace, Origin origin) const {
    const auto location = locate(workspace);
    if (!location) return location.error();
    if (const auto clause = find_fault(workspace, *location, origin)) {
        return forbidden_error(workspace, *clause);
    }
    for (std::size_t i = 0; i < binds_.size(); ++i) {
        if (binds_[i].access == Access::read_only && os::lies_in(binds_[i].place, workspace.id)) {
            return Error(ErrorKind::policy_denied,
                         "the workspace would make " + bind_keys_[i] + " (" +
                             os::printable(binds_[i].place.path) + ") writable",
                         {}, "use a workspace that does not hold it");
        }
    }
    if (const auto clause = shown_.find_fault(workspace)) {
        return forbidden_error(workspace, *clause);
    }
    if (origin == Origin::preflight) return {};
    const auto holds = [&workspace](const os::Place& root) {
        return os::lies_in(workspace, root.id);
    };
    if (workspaces_.empty() || std::any_of(workspaces_.begin(), workspaces_.end(), holds)) {
        return {};
    }
    return Error(ErrorKind::policy_denied, os::printable(workspace.path) +
                                               " lies in none of the places that `workspaces` "
                                               "in mechad's configuration allows");
}

// What is mounted below a place is shown with it, so that it must pass as a place of its own.
Result<void> Policy::check_mounts(const os::Place& place, ErrorKind kind) const {
    if (!place.is_directory) return {};
    const auto refusal = [&](const std::string& point, const std::string& why, const char* hint) {
        return Error(kind,
                     os::printable(place.path) + " has something mounted below it, at " +
                         os::printable(point) + why,
                     {}, hint);
    };
    const std::string prefix = place.path + "/";
    const auto worst = forbidden_mounts_.lower_bound(prefix);
    if (worst != forbidden_mounts_.end() && worst->first.starts_with(prefix)) {
        return refusal(worst->first, ", that may not be given to a command: " + worst->second,
                       "unmount it, or name a directory without it");
    }
    if (config_.sandbox.submounts) return {};
    const auto below = mounts_.find_below(place.path);
    if (!below) return {};
    return refusal(*below, "",
                   "unmount it, or set submounts = true in [sandbox] of mechad's configuration");
}

// The system directories are shown with all that is mounted below them. Only directories matter:
// a file of /run such as resolv.conf may well be mounted in /etc.
Result<void> Policy::check_system_mounts() const {
    for (const std::string& path : system_) {
        const std::string prefix = path + "/";
        for (auto mount = forbidden_mounts_.lower_bound(prefix);
             mount != forbidden_mounts_.end() && mount->first.starts_with(prefix); ++mount) {
            if (!is_readable_directory(mount->first)) continue;
            return Error(
                ErrorKind::policy_denied,
                "every box shows " + path + ", and at " + os::printable(mount->first) +
                    " something is mounted that may not be given to a command: " + mount->second,
                {}, "unmount it");
        }
    }
    return {};
}

Result<bool> Policy::admit_network(std::optional<bool> wanted, Origin origin) const {
    if (config_.sandbox.kind == BackendKind::none) {
        if (wanted.value_or(true)) return true;
        return Error(ErrorKind::policy_denied,
                     "the network cannot be closed: mechad is configured without a sandbox",
                     "network", "set kind = \"bwrap\" in [sandbox], or leave network out");
    }
    const bool network = wanted.value_or(config_.sandbox.network);
    const bool opens = network && !config_.sandbox.network;
    if (opens && origin == Origin::client &&
        config_.daemon.network_override == NetworkOverride::narrow) {
        return Error(ErrorKind::policy_denied,
                     "the network is closed, and network_override = \"narrow\" lets no request "
                     "open it",
                     "network", "leave network out, or change mechad's configuration");
    }
    return network;
}

Environment Policy::environment_for(const Directory& workspace) const {
    Environment environment = base_env_;
    if (config_.sandbox.kind != BackendKind::none) {
        environment = {{"PATH", std::string(boxed_path)}, {"HOME", workspace.path}};
    }
    for (const auto& [name, value] : config_env_) environment[name] = value;
    return environment;
}

}  // namespace mechad
