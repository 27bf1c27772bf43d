// SPDX-License-Identifier: MIT
// What the daemon and its clients have to agree on before they can talk: where the socket is.
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <string_view>

namespace mechad::os {

// Where to look, from the environment; empty when unset.
struct SocketSearch {
    std::string named;        // $MECHAD_SOCKET
    std::string runtime_dir;  // $XDG_RUNTIME_DIR
    uid_t uid = 0;
};

// The order of PROTOCOL.md: the first that is set, whether or not anything is there.
std::string find_socket_path(const SocketSearch& search);

// A path of AF_UNIX with its NUL is at most as long as the kernel's structure.
inline constexpr std::size_t socket_path_bytes_max = sizeof(sockaddr_un::sun_path) - 1;

// mechad binds its socket under a longer name and renames it, so that whoever finds the path can
// connect.
inline constexpr std::string_view fresh_socket_suffix = ".new";

// Empty when `path` is empty or too long.
std::optional<sockaddr_un> socket_address(const std::string& path);

}  // namespace mechad::os
