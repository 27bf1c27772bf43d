// SPDX-License-Identifier: MIT
// The places that neither a request nor a config entry may hand to a command: homes, credentials,
// the kernel's trees, mechad's own files. Collected once, at start.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/os/host_facts.hpp"
#include "daemon/os/path_gate.hpp"

namespace mechad {

// A place is recognised by its identity, whatever name it is reached by (a bind mount, a link in
// the forbidden path itself), and by its name, so that what is made or replaced after the start is
// forbidden as well.
class ForbiddenPlaces {
public:
    // The place itself and every directory that holds it.
    void forbid(std::string_view path, std::string_view what) { add(path, what, Reach::itself); }
    // Everything inside it, too.
    void forbid_tree(std::string_view path, std::string_view what) { add(path, what, Reach::tree); }

    // Why a place is forbidden, as a clause ("it is the home directory of u"); nullopt: it is not.
    std::optional<std::string> find(const os::Place& place) const;

private:
    enum class Reach { holder, itself, tree };
    struct Rule {
        Reach reach = Reach::holder;
        std::string what;
    };
    template <class Key>
    using Rules = std::map<Key, Rule, std::less<>>;

    void add(std::string_view path, std::string_view what, Reach reach);
    void add_name(std::string_view path, const Rule& rule);
    void add_identity(std::string_view path, const Rule& rule);
    template <class Key>
    static std::optional<std::string> match(const Rules<Key>& rules, const Key& key, bool is_place);

    Rules<os::FileId> by_id_;
    Rules<std::string> by_path_;
};

// What holds for every user of every machine, and the homes, credentials and runtime directory of
// this one. `home` and `runtime_directory` ($HOME, $XDG_RUNTIME_DIR) may be empty.
ForbiddenPlaces find_forbidden_places(const os::HostFacts& host, const std::string& home,
                                      const std::string& runtime_directory);

// What is refused for the place alone, without a list: a credential directory by its name anywhere
// in the path, and a file system that the kernel makes up.
std::optional<std::string> find_inherent_fault(const os::Place& place);

}  // namespace mechad
