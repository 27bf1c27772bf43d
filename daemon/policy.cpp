// SPDX-License-Identifier: MIT
#include "daemon/policy.hpp"

#include <algorithm>
#include <array>

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

Policy::Policy(Config config, PlaceGate gate)
    : config_(std::move(config)), gate_(std::move(gate)) {}

Result<std::unique_ptr<Policy>> Policy::make(Config config, const os::HostFacts& host,
                                             const OwnPlaces& own, const Environment& inherited) {
    auto gate = PlaceGate::make(config.sandbox, host, own, inherited);
    if (!gate) return gate.error();
    std::unique_ptr<Policy> policy(new Policy(std::move(config), *std::move(gate)));
    policy->choose_environment(inherited);
    if (auto opened = policy->open_entries(); !opened) return opened.error();
    return policy;
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
        const auto location = gate_.locate(*place);
        if (!location) return entry_error(location.error(), name);
        const auto clause = gate_.find_fault(*place, *location, Asker::client);
        if (clause) return entry_error(forbidden_error(*place, *clause, entry_hint), name);
        auto mounts = gate_.check_mounts(*place, ErrorKind::bad_workspace);
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

// Also lets workspaces see the readable entries as shown. An entry below a writable one is not
// mounted, so that only what is shown read-only counts.
Result<void> Policy::check_mount_points() {
    if (config_.sandbox.kind == BackendKind::none) return {};
    for (const ExtraBind& bind : binds_) {
        if (bind.access != Access::read_only || !bind.is_directory) continue;
        gate_.show(bind.place);
    }
    for (std::size_t i = 0; i < binds_.size(); ++i) {
        const auto clause = gate_.find_mount_point_fault(binds_[i].place);
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
    return admit_from(request, Asker::client);
}

Result<Admission> Policy::admit_probe(const SpawnParams& request) {
    return admit_from(request, Asker::preflight);
}

// What can be judged by the request's text alone comes before any path is opened.
Result<Admission> Policy::admit_from(const SpawnParams& request, Asker asker) {
    if (auto available = check_available(request); !available) return available.error();
    auto argv = argv_of(request);
    if (!argv) return argv.error();
    const auto network = admit_network(request.network, asker);
    if (!network) return network.error();
    auto workspace = admit_workspace(request.workspace, asker);
    if (!workspace) return workspace.error();
    auto cwd = cwd_of(request.cwd, workspace->path);
    if (!cwd) return cwd.error();
    auto env = env_of(request, environment_for(*workspace));
    if (!env) return env.error();

    // mechad's own command has limits of its own.
    static const DaemonConfig no_limits;
    const DaemonConfig& limits = asker == Asker::preflight ? no_limits : config_.daemon;
    Command command{
        .argv = *std::move(argv),
        .env = *std::move(env),
        .cwd = *std::move(cwd),
        .stdin_spec = request.stdin_spec,
        .timeout = narrower(request.timeout, limits.timeout),
        .output_limit_bytes = narrower(request.output_limit_bytes, limits.output_limit_bytes),
        .on_output_limit = request.on_output_limit,
        .label = request.label,
    };
    Box box(Box::Key(), {
                            .backend = config_.sandbox.kind,
                            .workspace = *std::move(workspace),
                            .extra_binds = &binds_,
                            .network = *network,
                            .tmp_bytes = config_.sandbox.tmp_mb << 20,
                        });
    return Admission{std::move(box), std::move(command)};
}

Result<Directory> Policy::admit_workspace(const std::string& path, Asker asker) {
    auto workspace = os::open_place(path, os::PlaceType::directory);
    if (!workspace) return workspace.error().with_field("workspace");
    if (auto followed = gate_.follow_mounts(); !followed) return followed.error();
    if (auto checked = check_workspace(*workspace, asker); !checked) {
        return checked.error().with_field("workspace");
    }
    if (auto mounts = gate_.check_mounts(*workspace, ErrorKind::bad_workspace); !mounts) {
        return mounts.error().with_field("workspace");
    }
    for (std::size_t i = 0; i < binds_.size(); ++i) {
        if (auto mounts = gate_.check_mounts(binds_[i].place, ErrorKind::policy_denied); !mounts) {
            return mounts.error().with_field(bind_keys_[i]);
        }
    }
    if (auto system = gate_.check_system_mounts(); !system) return system.error();
    return workspace;
}

Result<void> Policy::check_workspace(const Directory& workspace, Asker asker) const {
    const auto location = gate_.locate(workspace);
    if (!location) return location.error();
    if (const auto clause = gate_.find_fault(workspace, *location, asker)) {
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
    if (const auto clause = gate_.find_mount_point_fault(workspace)) {
        return forbidden_error(workspace, *clause);
    }
    if (asker == Asker::preflight) return {};
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

Result<bool> Policy::admit_network(std::optional<bool> wanted, Asker asker) const {
    if (config_.sandbox.kind == BackendKind::none) {
        if (wanted.value_or(true)) return true;
        return Error(ErrorKind::policy_denied,
                     "the network cannot be closed: mechad is configured without a sandbox",
                     "network", "set kind = \"bwrap\" in [sandbox], or leave network out");
    }
    const bool network = wanted.value_or(config_.sandbox.network);
    const bool opens = network && !config_.sandbox.network;
    if (opens && asker == Asker::client &&
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
