// SPDX-License-Identifier: MIT
#include "daemon/preflight/datagram_ear.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace {

sockaddr_in loopback(unsigned short port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

}  // namespace

Result<DatagramEar> DatagramEar::open(std::string token) {
    os::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    auto address = loopback(0);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (!fd || ::bind(fd.get(), generic, size) != 0 ||
        ::getsockname(fd.get(), generic, &size) != 0) {
        return os::os_error("listen for preflight's datagrams", errno, "bind");
    }
    return DatagramEar(std::move(token), std::move(fd), ntohs(address.sin_port));
}

Result<bool> DatagramEar::take_verdict() {
    const std::string control = os::random_hex(16);
    const auto address = loopback(port_);
    if (::sendto(fd_.get(), control.data(), control.size(), MSG_DONTWAIT,
                 reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) {
        return os::os_error("reach preflight's own socket", errno, "sendto");
    }
    bool is_token_come = false;
    for (std::array<char, 512> buffer;;) {
        const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0) break;
        const std::string_view heard(buffer.data(), static_cast<std::size_t>(got));
        if (heard == control) return is_token_come;
        is_token_come = is_token_come || heard.find(token_) != std::string_view::npos;
    }
    return Error(ErrorKind::internal, "preflight's own datagram was not heard");
}

}  // namespace mechad
