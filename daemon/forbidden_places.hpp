// SPDX-License-Identifier: MIT
// The places that neither a request nor a config entry may hand to a command: homes, credentials,
// the kernel's trees, mechad's own files. Collected once, at start.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/os/host_facts.hpp"
#include "daemon/os/mount_table.hpp"
#include "daemon/os/path_gate.hpp"

namespace mechad {

// A place is recognised by its identity, whatever name it is reached by (a bind mount, a link in
// the forbidden path itself); by its name, so that what is made or replaced after the start is
// forbidden as well; and by its location in its file system, so that a bind mount of something
// inside it is known although no ancestor leads there. What shows files of one file system as
// those of another cannot be told: overlays, FUSE (bindfs), network file systems that the machine
// serves to itself. Nor can hard links, and bind mounts of what was moved out of its place.
class ForbiddenPlaces {
public:
    // The place itself and every directory that holds it.
    void forbid(std::string_view path, std::string_view what) { add(path, what, Reach::itself); }
    // Everything inside it, too.
    void forbid_tree(std::string_view path, std::string_view what) { add(path, what, Reach::tree); }

    enum class Owner { self, other };
    void forbid_home(std::string_view path, std::string_view what, Owner owner);

    // Finds the locations; to be called before `find`, and again whenever the table has changed.
    void locate(const os::MountTable& mounts);

    // Why a place is forbidden, as a clause ("it is the home directory of u"); nullopt: it is not.
    std::optional<std::string> find(const os::Place& place, const os::Location& location) const;
    // The same by a clean path's text alone, in which no link is seen: for what is only said. Also
    // what lies in the home of another user.
    std::optional<std::string> find_by_text(std::string_view path) const;
    // The same of what a mount shows.
    std::optional<std::string> find(const os::Location& location) const;

private:
    enum class Reach { holder, itself, tree };
    struct Rule {
        Reach reach = Reach::holder;
        std::string what;
        // nullopt: it does not concern what merely lies below (`is_place` false).
        std::optional<std::string> clause(bool is_place) const;
    };
    template <class Key>
    using Rules = std::map<Key, Rule, std::less<>>;

    void add(std::string_view path, std::string_view what, Reach reach);
    void add_identity(std::string_view path, const Rule& rule);
    void add_location(const os::Location& location, const Rule& rule);
    const Rule* find_tree(std::string_view path) const;

    struct Home {
        std::string what;
        Owner owner = Owner::other;
    };

    Rules<os::FileId> by_id_;
    Rules<std::string> by_path_;
    Rules<std::string> canonical_;  // those of by_path_ that have no link in them
    Rules<os::Location> by_location_;
    std::map<std::string, Home, std::less<>> homes_;
};

// What holds for every user of every machine, and the homes, credentials and runtime directory of
// this one. `home` and `runtime_directory` ($HOME, $XDG_RUNTIME_DIR) may be empty.
ForbiddenPlaces find_forbidden_places(const os::HostFacts& host, const std::string& home,
                                      const std::string& runtime_directory);

// What is refused without a list: a credential directory by its name anywhere in the path, and a
// file system that the kernel makes up.
std::optional<std::string> find_inherent_fault(const os::Location& location);

}  // namespace mechad
