// SPDX-License-Identifier: MIT
#include "daemon/os/socket_file.hpp"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

#include <array>
#include <cstring>

namespace mechad::os {

namespace {

struct Question {
    nlmsghdr header;
    unix_diag_req request;
};

// MAJOR << 20 | MINOR, as the kernel has it inside.
constexpr unsigned minor_bits = 20;

Question ask_for_file(ino_t socket) {
    Question question{};
    question.header.nlmsg_len = sizeof question;
    question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    question.header.nlmsg_flags = NLM_F_REQUEST;
    question.request.sdiag_family = AF_UNIX;
    question.request.udiag_states = ~0U;
    question.request.udiag_ino = static_cast<__u32>(socket);
    question.request.udiag_show = UDIAG_SHOW_VFS;
    question.request.udiag_cookie[0] = ~0U;  // whichever
    question.request.udiag_cookie[1] = ~0U;
    return question;
}

std::optional<unix_diag_vfs> find_vfs(const char* answer, std::size_t size) {
    nlmsghdr header{};
    constexpr std::size_t before = NLMSG_LENGTH(NLMSG_ALIGN(sizeof(unix_diag_msg)));
    if (size < before) return std::nullopt;
    std::memcpy(&header, answer, sizeof header);
    if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || header.nlmsg_len > size) return std::nullopt;
    for (std::size_t at = before; at + RTA_LENGTH(0) <= header.nlmsg_len;) {
        rtattr attribute{};
        std::memcpy(&attribute, answer + at, sizeof attribute);
        if (attribute.rta_len < RTA_LENGTH(0)) return std::nullopt;
        unix_diag_vfs file{};
        const bool is_whole = at + RTA_LENGTH(sizeof file) <= header.nlmsg_len &&
                              attribute.rta_len >= RTA_LENGTH(sizeof file);
        if (attribute.rta_type == UNIX_DIAG_VFS && is_whole) {
            std::memcpy(&file, answer + at + RTA_LENGTH(0), sizeof file);
            return file;
        }
        at += RTA_ALIGN(attribute.rta_len);
    }
    return std::nullopt;
}

// The kernel answers while it is asked: nothing is waited for.
std::optional<unix_diag_vfs> look_up(ino_t socket) {
    const UniqueFd diag(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    if (!diag) return std::nullopt;
    const Question question = ask_for_file(socket);
    if (::send(diag.get(), &question, sizeof question, MSG_DONTWAIT) < 0) return std::nullopt;
    std::array<char, 4096> answer{};
    const ssize_t size = ::recv(diag.get(), answer.data(), answer.size(), MSG_DONTWAIT);
    if (size < 0) return std::nullopt;
    return find_vfs(answer.data(), static_cast<std::size_t>(size));
}

}  // namespace

std::optional<bool> is_file_of(const UniqueFd& fd, const struct stat& file) {
    struct stat socket {};
    if (::fstat(fd.get(), &socket) != 0) return std::nullopt;
    const auto bound = look_up(socket.st_ino);
    if (!bound) return std::nullopt;
    const auto device = major(file.st_dev) << minor_bits | minor(file.st_dev);
    if (bound->udiag_vfs_dev != device) return std::nullopt;
    return bound->udiag_vfs_ino == static_cast<__u32>(file.st_ino);
}

}  // namespace mechad::os
