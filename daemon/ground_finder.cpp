// SPDX-License-Identifier: MIT
#include "daemon/ground_finder.hpp"

#include <sys/stat.h>

#include <filesystem>

namespace mechad {

Result<GroundFinder> GroundFinder::make(const os::HostFacts& host, const Policy& policy) {
    auto mounts = os::MountTable::make();
    if (!mounts) return mounts.error();
    GroundFinder finder(*std::move(mounts), host, policy);
    finder.refresh();
    return finder;
}

void GroundFinder::refresh() {
    const auto is_new = mounts_.refresh();
    is_blind_ = !is_new;
    if (is_new && !*is_new) return;
    ++mounts_as_of_;
    if (is_new) shared_ = find_shared();
}

Footprint GroundFinder::find(const os::Place& workspace) const {
    Footprint footprint{.workspace = workspace.id, .lineage = {}};
    std::string path = os::find_path(workspace.fd);
    auto lineage = os::find_lineage(workspace.fd);
    auto location = mounts_.locate(path, workspace.mount);
    if (is_blind_ || !lineage || !location) {
        footprint.is_lost = true;
        return footprint;
    }
    footprint.lineage = *std::move(lineage);
    footprint.grounds.push_back(*std::move(location));
    add_mounts(path, footprint.grounds);
    footprint.path = std::move(path);
    footprint.mounts_as_of = mounts_as_of_;
    return footprint;
}

void GroundFinder::update(Footprint& footprint, const os::Place& workspace) const {
    const bool is_same = !footprint.is_lost && footprint.mounts_as_of == mounts_as_of_ &&
                         footprint.path == os::find_path(workspace.fd);
    if (is_same) return;
    auto exposure = std::move(footprint.exposure);
    footprint = find(workspace);
    footprint.exposure = std::move(exposure);
}

SharedGround GroundFinder::find_shared() const {
    SharedGround ground;
    const auto add = [&](const os::FileId& id, const std::string& path,
                         std::optional<os::Location> location) {
        ground.roots.push_back(id);
        ground.is_lost = ground.is_lost || !location;
        if (location) ground.grounds.push_back(*std::move(location));
        add_mounts(path, ground.grounds);
    };
    for (const auto& entry : host_->system) {
        struct stat found {};
        std::error_code error;
        const auto path = std::filesystem::canonical(entry.path, error);
        if (error || ::stat(path.c_str(), &found) != 0) continue;
        add({found.st_dev, found.st_ino}, path, mounts_.locate(path.string()));
    }
    for (const auto& bind : policy_->extra_binds()) {
        const std::string path = os::find_path(bind.place.fd);
        add(bind.place.id, path, mounts_.locate(path, bind.place.mount));
        ground.has_writable = ground.has_writable || bind.access == Access::read_write;
    }
    return ground;
}

void GroundFinder::add_mounts(const std::string& path, std::vector<os::Location>& grounds) const {
    for (const os::Mount& mount : mounts_.below(path)) grounds.push_back(mount.shown);
}

}  // namespace mechad
