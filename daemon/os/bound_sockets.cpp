// SPDX-License-Identifier: MIT
#include "daemon/os/bound_sockets.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>

#include "daemon/os/path_text.hpp"
#include "daemon/os/syscalls.hpp"

namespace mechad::os {
namespace {

constexpr const char* table_path = "/proc/net/unix";
// Some 40,000 sockets; reading more of them would hold all runs up.
constexpr std::size_t table_bytes_max = std::size_t{4} << 20;
constexpr std::size_t buffer_bytes_min = std::size_t{64} << 10;

bool take_digits(std::string_view& line, std::size_t count) {
    if (line.size() < count) return false;
    for (const char digit : line.substr(0, count)) {
        const bool is_hex = (digit >= '0' && digit <= '9') || (digit >= 'A' && digit <= 'F');
        if (!is_hex) return false;
    }
    line.remove_prefix(count);
    return true;
}

bool take(std::string_view& line, std::string_view text) {
    if (!line.starts_with(text)) return false;
    line.remove_prefix(text.size());
    return true;
}

// "ADDRESS: REFCOUNT PROTOCOL FLAGS TYPE STATE INODE", then nothing or " NAME". The inode, and in
// `line` what comes after it.
std::optional<std::uint64_t> take_row(std::string_view& line) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    if (line.substr(0, colon).find(' ') != std::string_view::npos) return std::nullopt;
    line.remove_prefix(colon + 2);
    for (const std::size_t width : {8U, 8U, 8U, 4U, 2U}) {
        if (!take_digits(line, width) || !take(line, " ")) return std::nullopt;
    }
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    std::uint64_t inode = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), inode);
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (error != std::errc() || (!line.empty() && line.front() != ' ')) return std::nullopt;
    return inode;
}

UniqueFd open_directory(const std::string& path) {
    return UniqueFd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// What these lead to depends on who asks.
bool depends_on_reader(std::string_view name) {
    for (const std::string_view prefix : {"/proc/self/", "/proc/thread-self/", "/dev/fd/"}) {
        if (name.starts_with(prefix)) return true;
    }
    return !name.starts_with('/');
}

bool is_socket_in(const Place& place, const std::string& path) {
    struct open_how how {};
    how.flags = static_cast<__u64>(O_PATH | O_NOFOLLOW | O_CLOEXEC);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    const UniqueFd fd(
        static_cast<int>(::syscall(SYS_openat2, place.fd.get(), path.c_str(), &how, sizeof how)));
    struct stat found {};
    return fd && ::fstat(fd.get(), &found) == 0 && S_ISSOCK(found.st_mode);
}

// "a/b/c", "b/c", "c".
bool has_end_in(const Place& place, std::string_view name) {
    for (;;) {
        const std::size_t begin = name.find_first_not_of('/');
        if (begin == std::string_view::npos) return false;
        name.remove_prefix(begin);
        if (is_socket_in(place, std::string(name))) return true;
        const std::size_t slash = name.find('/');
        if (slash == std::string_view::npos) return false;
        name.remove_prefix(slash);
    }
}

}  // namespace

Result<std::vector<BoundSocket>> parse_bound_sockets(std::string_view text) {
    if (!text.starts_with("Num ") || !text.ends_with('\n')) {
        return Error(ErrorKind::internal, "the table of Unix sockets is not whole");
    }
    std::vector<BoundSocket> sockets;
    bool has_name = false;  // of the row before
    text.remove_prefix(text.find('\n') + 1);
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(line.size() + 1);
        std::string_view rest = line;
        if (const auto inode = take_row(rest)) {
            has_name = !rest.empty();
            if (has_name) sockets.push_back({*inode, rest.substr(1)});
        } else if (has_name) {
            std::string_view& name = sockets.back().name;
            const char* const end = line.data() + line.size();
            name = {name.data(), static_cast<std::size_t>(end - name.data())};
        } else {
            return Error(ErrorKind::internal, "the table of Unix sockets has an unknown form");
        }
    }
    return sockets;
}

Result<void> BoundSockets::open() {
    if (!file_) {
        auto file = open_file(table_path, O_RDONLY);
        if (!file) return file.error();
        file_ = *std::move(file);
    }
    if (!mounts_) {
        auto mounts = MountTable::make();
        if (!mounts) return mounts.error();
        mounts_ = *std::move(mounts);
    }
    return {};
}

Result<std::string_view> BoundSockets::read_table() {
    if (auto opened = open(); !opened) return opened.error();
    if (::lseek(file_.get(), 0, SEEK_SET) != 0) {
        return os_error("rewind the table of Unix sockets", errno, "lseek");
    }
    std::size_t size = 0;
    while (size < table_bytes_max) {
        if (buffer_.size() == size) buffer_.resize(std::max(2 * size, buffer_bytes_min));
        const ssize_t got = ::read(file_.get(), buffer_.data() + size, buffer_.size() - size);
        if (got < 0) return os_error("read the table of Unix sockets", errno, "read");
        if (got == 0) return std::string_view(buffer_).substr(0, size);
        size += static_cast<std::size_t>(got);
    }
    return Error(ErrorKind::internal, "more Unix sockets are open than can be looked at");
}

Result<std::optional<std::string>> BoundSockets::find_below(
    std::span<const Place* const> directories) {
    const auto table = read_table();
    if (!table) return table.error();
    const auto sockets = parse_bound_sockets(*table);
    if (!sockets) return sockets.error();
    if (const auto fresh = mounts_->refresh(); !fresh) return fresh.error();
    std::vector<Asked> asked;
    for (const Place* const place : directories) {
        std::string path = find_path(place->fd);
        auto location = mounts_->locate(path, place->mount);
        if (!location) return Error(ErrorKind::internal, "no mount holds " + place->path);
        asked.push_back({place, std::move(path), std::move(location->path)});
    }

    ++look_;
    std::optional<std::string> found;
    for (const BoundSocket& socket : *sockets) {
        const Site& site = site_of(socket);
        const auto is_in = [&](const Asked& one) { return is_below(socket.name, site, one); };
        if (!found && std::any_of(asked.begin(), asked.end(), is_in)) found = socket.name;
    }
    std::erase_if(seen_, [this](const auto& entry) { return entry.second.look != look_; });
    return found;
}

const BoundSockets::Site& BoundSockets::site_of(const BoundSocket& socket) {
    Seen& seen = seen_[socket.inode];
    if (seen.look == 0 || seen.name != socket.name) {
        seen = {std::string(socket.name), locate(socket.name)};
    }
    seen.look = look_;
    return seen.site;
}

BoundSockets::Site BoundSockets::locate(std::string_view name) {
    Site site;
    if (depends_on_reader(name)) return site;
    const UniqueFd directory = open_directory(std::string(name.substr(0, name.rfind('/') + 1)));
    if (!directory) return site;
    struct statx found {};
    const int flags = AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
    if (::statx(directory.get(), "", flags, STATX_INO, &found) != 0) return site;
    site.dev = gnu_dev_makedev(found.stx_dev_major, found.stx_dev_minor);
    site.path = find_path(directory);
    auto location = mounts_->locate(site.path);
    site.is_known = location.has_value();
    if (location) site.inside = std::move(location->path);
    return site;
}

bool BoundSockets::is_below(std::string_view name, const Site& site, const Asked& asked) {
    if (is_beneath(name, asked.path) || is_beneath(name, asked.place->path)) return true;
    if (!site.is_known) return has_end_in(*asked.place, name);
    if (is_beneath(site.path, asked.path) || is_beneath(site.path, asked.place->path)) return true;
    return site.dev == asked.place->id.dev && is_beneath(site.inside, asked.inside);
}

}  // namespace mechad::os
