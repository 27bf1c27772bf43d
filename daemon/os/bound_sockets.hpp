// SPDX-License-Identifier: MIT
// Which Unix sockets of this machine are bound below a directory, by the kernel's table of them.
//
// The table has names, not places, and an abstract "x" looks like a relative "@x" there, which is
// looked for. Some sockets cannot be found:
// - those of other network namespaces (containers), which are not in the table;
// - those that a relative name leads to from a directory below the one asked about, and those of
//   programs in another mount namespace, whose names may mean other places here: of such a name
//   only the ends are looked for, from the directory asked about;
// - one that was renamed, linked or carried there with its directory after it was bound elsewhere;
// - one whose name leads through a link that was removed or turned before the first look at it;
// - one that is bound and gone again between two looks, or, for the kernel does not hold its table
//   still, during one.
// A name that was bound below the directory counts although its file may be gone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/os/mount_table.hpp"
#include "daemon/os/path_gate.hpp"
#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad::os {

struct BoundSocket {
    std::uint64_t inode = 0;  // of the socket, not of its file; no other's while it is open
    std::string_view name;    // as its binder wrote it
    bool operator==(const BoundSocket&) const = default;
};

class BoundSockets {
public:
    // The name of a socket bound in or below one of `directories`, as its binder wrote it. An
    // error means that the table could not be read: the caller must not assume that there is none.
    //
    // Reads the table each time (about 0.4 us a socket). The directory in a name is looked up once
    // for as long as the socket is in the table, so that a file system which does not answer holds
    // the caller up once.
    Result<std::optional<std::string>> find_below(std::span<const Place* const> directories);

private:
    // Where the directory of a name lies.
    struct Site {
        bool is_known = false;  // false: only the ends of the name can be tried
        dev_t dev = 0;
        std::string path;    // without links
        std::string inside;  // its file system (os::Location)
    };
    struct Seen {
        std::string name;
        Site site;
        unsigned look = 0;
    };
    struct Asked {
        const Place* place;
        std::string path;    // as of now
        std::string inside;  // its file system
    };

    Result<void> open();
    Result<std::string_view> read_table();
    const Site& site_of(const BoundSocket& socket);
    Site locate(std::string_view name);
    static bool is_below(std::string_view name, const Site& site, const Asked& asked);

    UniqueFd file_;
    std::optional<MountTable> mounts_;
    std::string buffer_;
    // By inode: a name may be bound again, by then in another place.
    std::map<std::uint64_t, Seen> seen_;
    unsigned look_ = 0;
};

// The sockets with a name, of a text in the form of /proc/net/unix, in any state, each as often as
// it occurs. A name may hold any byte, a line feed too: what is no row of the table continues the
// name before it. A text that does not begin or end as the table does is an error.
Result<std::vector<BoundSocket>> parse_bound_sockets(std::string_view text);

}  // namespace mechad::os
