// SPDX-License-Identifier: MIT
#include "daemon/os/unix_socket.hpp"

#include <sys/socket.h>

#include <cstring>

namespace mechad::os {

std::string find_socket_path(const SocketSearch& search) {
    if (!search.named.empty()) return search.named;
    const std::string base =
        search.runtime_dir.empty() ? "/run/user/" + std::to_string(search.uid) : search.runtime_dir;
    return base + "/mechad/mechad.sock";
}

std::optional<sockaddr_un> socket_address(const std::string& path) {
    if (path.empty() || path.size() > socket_path_bytes_max) return std::nullopt;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

}  // namespace mechad::os
