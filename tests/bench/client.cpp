// SPDX-License-Identifier: MIT
#include "tests/bench/client.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "daemon/os/unique_fd.hpp"

namespace mechad::bench {

namespace {

os::UniqueFd connect_to(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) die("socket path too long: " + path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // The C interface of connect() takes every kind of address as this one.
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(fd.get(), generic, sizeof address) != 0) {
        die("cannot connect to " + path + ": " + std::strerror(errno));
    }
    return fd;
}

void send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0) die(std::string("send: ") + std::strerror(errno));
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

// Notifications name their method near their beginning; the reply has none.
bool is_reply(std::string_view line) {
    return line.substr(0, 64).find("\"method\"") == std::string_view::npos;
}

}  // namespace

void die(const std::string& message) {
    std::fprintf(stderr, "bench: %s\n", message.c_str());
    std::exit(1);
}

std::string call(const std::string& socket_path, const std::string& line) {
    const os::UniqueFd fd = connect_to(socket_path);
    send_all(fd.get(), line);

    std::vector<char> buffer(std::size_t{1} << 18);
    std::size_t kept = 0;  // of an incomplete line, at the start of the buffer
    for (;;) {
        if (kept == buffer.size()) die("a line of the daemon is too long");
        const ssize_t got = ::read(fd.get(), buffer.data() + kept, buffer.size() - kept);
        if (got <= 0) die("the daemon closed the connection before its reply");
        std::string_view rest(buffer.data(), kept + static_cast<std::size_t>(got));
        for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
            const auto found = rest.substr(0, end);
            if (is_reply(found)) return std::string(found);
            rest.remove_prefix(end + 1);
        }
        kept = rest.size();
        std::memmove(buffer.data(), rest.data(), kept);
    }
}

std::string spawn_line(const std::vector<std::string>& argv, const std::string& workspace) {
    std::string words;
    for (const auto& word : argv) {
        if (!words.empty()) words += ',';
        words += '"' + word + '"';
    }
    return R"({"jsonrpc":"2.0","id":1,"method":"spawn","params":{"argv":[)" + words +
           R"(],"workspace":")" + workspace + "\"}}\n";
}

}  // namespace mechad::bench
