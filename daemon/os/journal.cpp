// SPDX-License-Identifier: MIT
#include "daemon/os/journal.hpp"

#include <endian.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "daemon/os/unique_fd.hpp"
#include "daemon/os/unix_socket.hpp"

namespace mechad::os {

namespace {

constexpr const char* journal_path = "/run/systemd/journal/socket";

// NAME=VALUE and a line feed; or, where VALUE has line feeds itself, NAME, a line feed, the size of
// VALUE in 8 bytes and VALUE (systemd.io/JOURNAL_NATIVE_PROTOCOL).
void append_field(std::string& entry, const std::string& field) {
    const std::size_t equals = field.find('=');
    if (field.find('\n') == std::string::npos || equals == std::string::npos) {
        entry += field + '\n';
        return;
    }
    const std::uint64_t size = htole64(field.size() - equals - 1);
    std::array<char, sizeof size> bytes{};
    std::memcpy(bytes.data(), &size, sizeof size);
    entry.append(field, 0, equals).append("\n").append(bytes.data(), bytes.size());
    entry.append(field, equals + 1).append("\n");
}

}  // namespace

// sd_journal_sendv(3) waits while the journal does not read.
bool send_to_journal(const std::vector<std::string>& fields) {
    std::string entry;
    for (const std::string& field : fields) append_field(entry, field);
    const auto address = socket_address(journal_path);
    const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return fd && address &&
           ::sendto(fd.get(), entry.data(), entry.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                    reinterpret_cast<const sockaddr*>(&*address), sizeof *address) >= 0;
}

}  // namespace mechad::os
