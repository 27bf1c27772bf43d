// SPDX-License-Identifier: MIT
// Which places may be handed to a command, as workspace, `readable` or `writable`: those that are
// none of the forbidden ones, hold none, and have nothing mounted below them that is one. Judges
// what is open already (see os/path_gate.hpp), by identity, by name and by location.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/command_rules.hpp"
#include "daemon/config.hpp"
#include "daemon/forbidden_places.hpp"
#include "daemon/os/host_facts.hpp"
#include "daemon/os/mount_table.hpp"
#include "daemon/os/path_gate.hpp"
#include "daemon/shown_ground.hpp"

namespace mechad {

// mechad's own files: no workspace or bind may equal, hold or be inside one of them, nor hold
// the place where one that does not exist yet would be made.
struct OwnPlaces {
    std::vector<std::string> paths;  // absolute; directories, files or sockets
};

// Preflight's scratch workspace is one of mechad's own places.
enum class Asker { client, preflight };

class PlaceGate {
public:
    // Errors are of kind invalid_request.
    static Result<PlaceGate> make(const SandboxConfig& sandbox, const os::HostFacts& host,
                                  const OwnPlaces& own, const Environment& inherited);

    // Takes in what was mounted and unmounted. Answers of all others are as of the last call. An
    // error means that nothing may be admitted.
    Result<void> follow_mounts();

    // The errors have kind bad_workspace and no field.
    Result<os::Location> locate(const os::Place& place) const;
    // Why the place may not be handed to a command, as a clause; nullopt: it may.
    std::optional<std::string> find_fault(const os::Place& place, const os::Location& location,
                                          Asker asker) const;
    // The same of an entry by its clean path's text alone, without a look at it: for what is only
    // said.
    std::optional<std::string> find_fault_by_text(const std::string& path) const;
    // Why nothing may be mounted at `place` in a box (see shown_ground.hpp).
    std::optional<std::string> find_mount_point_fault(const os::Place& place) const {
        return shown_.find_fault(place);
    }
    // A `readable` directory, which every box shows from now on.
    void show(const os::Place& place) { shown_.add(place.path, place.id); }

    // What is mounted below a place goes with it. As of the admission: a bwrap box also shows what
    // is mounted there while its run lives.
    Result<void> check_mounts(const os::Place& place, ErrorKind kind) const;
    Result<void> check_system_mounts() const;

private:
    PlaceGate(os::MountTable mounts, ForbiddenPlaces forbidden, bool allows_submounts);
    void show_system(const os::HostFacts& host);
    std::optional<std::string> find_fault(const os::Location& location) const;

    os::MountTable mounts_;
    ForbiddenPlaces forbidden_;
    ForbiddenPlaces own_;
    bool allows_submounts_;
    std::map<std::string, std::string> forbidden_mounts_;  // by point; the value says why
    std::vector<std::string> system_;  // directories that every box shows; empty under none
    ShownGround shown_;                // empty where nothing is mounted
};

}  // namespace mechad
