// SPDX-License-Identifier: MIT
#include "daemon/place_gate.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "daemon/os/printable.hpp"
#include "daemon/place_names.hpp"

namespace mechad {
namespace {

std::string lookup(const Environment& environment, const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
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

}  // namespace

PlaceGate::PlaceGate(os::MountTable mounts, ForbiddenPlaces forbidden, bool allows_submounts)
    : mounts_(std::move(mounts)),
      forbidden_(std::move(forbidden)),
      allows_submounts_(allows_submounts) {}

Result<PlaceGate> PlaceGate::make(const SandboxConfig& sandbox, const os::HostFacts& host,
                                  const OwnPlaces& own, const Environment& inherited) {
    auto mounts = os::MountTable::make();
    if (!mounts) return mounts.error();
    auto forbidden = find_forbidden_places(host, lookup(inherited, "HOME"),
                                           lookup(inherited, "XDG_RUNTIME_DIR"));
    PlaceGate gate(*std::move(mounts), std::move(forbidden), sandbox.submounts);
    for (const std::string& path : own.paths) {
        const auto clean = clean_own_path(path);
        if (!clean) return clean.error();
        gate.own_.forbid_tree(*clean, "mechad's own " + os::printable(*clean));
    }
    if (auto followed = gate.follow_mounts(); !followed) return followed.error();
    if (sandbox.kind != BackendKind::none) gate.show_system(host);
    return gate;
}

// Each mount is judged once, as a place of its own, and not again with every request.
Result<void> PlaceGate::follow_mounts() {
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

std::optional<std::string> PlaceGate::find_fault(const os::Location& location) const {
    if (auto clause = forbidden_.find(location)) return clause;
    if (auto clause = own_.find(location)) return clause;
    return find_inherent_fault(location);
}

std::optional<std::string> PlaceGate::find_fault(const os::Place& place,
                                                 const os::Location& location, Asker asker) const {
    if (auto clause = forbidden_.find(place, location)) return clause;
    if (auto clause = find_credential_name(place.path)) return clause;
    if (auto clause = find_inherent_fault(location)) return clause;
    // Preflight's scratch workspace is one of mechad's own places.
    return asker == Asker::preflight ? std::nullopt : own_.find(place, location);
}

std::optional<std::string> PlaceGate::find_fault_by_text(const std::string& path) const {
    if (auto clause = forbidden_.find_by_text(path)) return clause;
    if (auto clause = find_credential_name(path)) return clause;
    return own_.find_by_text(path);
}

Result<os::Location> PlaceGate::locate(const os::Place& place) const {
    if (auto location = mounts_.locate(place.path, place.mount)) return *std::move(location);
    return Error(ErrorKind::bad_workspace,
                 os::printable(place.path) + " is on no mount that mechad can see", {},
                 "try again if something was mounted or unmounted there just now");
}

void PlaceGate::show_system(const os::HostFacts& host) {
    for (const os::SystemEntry& entry : host.system) {
        struct stat found {};
        if (!entry.link_target.empty() || ::stat(entry.path.c_str(), &found) != 0) continue;
        shown_.add(entry.path, {found.st_dev, found.st_ino});
        system_.push_back(entry.path);
    }
}

// What is mounted below a place is shown with it, so that it must pass as a place of its own.
Result<void> PlaceGate::check_mounts(const os::Place& place, ErrorKind kind) const {
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
    if (allows_submounts_) return {};
    const auto below = mounts_.find_below(place.path);
    if (!below) return {};
    return refusal(*below, "",
                   "unmount it, or set submounts = true in [sandbox] of mechad's configuration");
}

// The system directories are shown with all that is mounted below them. Only directories matter:
// a file of /run such as resolv.conf may well be mounted in /etc.
Result<void> PlaceGate::check_system_mounts() const {
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

}  // namespace mechad
