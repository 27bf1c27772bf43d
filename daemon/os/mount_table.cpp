// SPDX-License-Identifier: MIT
#include "daemon/os/mount_table.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "daemon/os/path_text.hpp"
#include "daemon/os/syscalls.hpp"

namespace mechad::os {
namespace {

constexpr int attempts_max = 16;  // of a read during which nothing is mounted

bool is_octal(char digit) { return digit >= '0' && digit <= '7'; }

// The kernel writes space, tab, newline, "\" and "#" as \OOO.
std::string without_escapes(std::string_view field) {
    std::string text;
    for (std::size_t i = 0; i < field.size(); ++i) {
        const std::string_view digits = field.substr(i + 1, 3);
        if (field[i] == '\\' && digits.size() == 3 &&
            std::all_of(digits.begin(), digits.end(), is_octal)) {
            text.push_back(static_cast<char>((digits[0] - '0') << 6 | (digits[1] - '0') << 3 |
                                             (digits[2] - '0')));
            i += 3;
        } else {
            text.push_back(field[i]);
        }
    }
    return text;
}

std::string_view field_of(std::string_view line, int index) {
    for (; index > 0; --index) {
        const std::size_t space = line.find(' ');
        if (space == std::string_view::npos) return {};
        line.remove_prefix(space + 1);
    }
    return line.substr(0, line.find(' '));
}

}  // namespace

Result<std::vector<Mount>> parse_mountinfo(std::string_view text) {
    // proc(5): ID, parent ID, device, root, mount point, ...
    constexpr int root_index = 3;
    constexpr int point_index = 4;
    std::vector<Mount> mounts;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const std::string_view root = field_of(line, root_index);
        const std::string_view point = field_of(line, point_index);
        if (root.empty() || point.empty()) {
            return Error(ErrorKind::internal, "the mount table has a line of unknown form");
        }
        mounts.push_back({without_escapes(point), without_escapes(root)});
    }
    std::stable_sort(mounts.begin(), mounts.end(),
                     [](const Mount& one, const Mount& other) { return one.point < other.point; });
    return mounts;
}

Result<MountTable> MountTable::make() {
    auto file = open_file("/proc/self/mountinfo", O_RDONLY);
    if (!file) return file.error();
    MountTable table(*std::move(file));
    if (auto read = table.refresh(); !read) return read.error();
    return table;
}

bool MountTable::has_changed() const {
    struct pollfd watched {
        file_.get(), POLLPRI, 0
    };
    // A failing poll counts as a change: reading once too often is harmless.
    return ::poll(&watched, 1, 0) != 0;
}

Result<void> MountTable::read_once() {
    std::string text;
    char buffer[16384];
    if (::lseek(file_.get(), 0, SEEK_SET) != 0) {
        return os_error("rewind the mount table", errno, "lseek");
    }
    for (;;) {
        const ssize_t got = ::read(file_.get(), buffer, sizeof buffer);
        if (got < 0) return os_error("read the mount table", errno, "read");
        if (got == 0) break;
        text.append(buffer, static_cast<std::size_t>(got));
    }
    auto mounts = parse_mountinfo(text);
    if (!mounts) return mounts.error();
    mounts_ = *std::move(mounts);
    return {};
}

// The kernel does not hold the table still between two reads, so one that was changed meanwhile
// is read again.
Result<void> MountTable::refresh() {
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
        if (has_changed()) stale_ = true;
        if (!stale_) return {};
        if (auto read = read_once(); !read) return read.error();
        stale_ = false;
    }
    stale_ = true;
    return Error(ErrorKind::internal, "the mount table changes faster than it can be read");
}

Result<std::optional<std::string>> MountTable::find_below(std::string_view path) {
    if (auto fresh = refresh(); !fresh) return fresh.error();
    std::string prefix(path);
    if (!prefix.ends_with('/')) prefix.push_back('/');
    // "/" itself is no mount point below "/".
    const auto found = std::upper_bound(
        mounts_.begin(), mounts_.end(), prefix,
        [](const std::string& wanted, const Mount& mount) { return wanted < mount.point; });
    if (found == mounts_.end() || !found->point.starts_with(prefix)) {
        return std::optional<std::string>();
    }
    return std::optional<std::string>(found->point);
}

Result<std::string> MountTable::path_inside(std::string_view path) {
    if (auto fresh = refresh(); !fresh) return fresh.error();
    const Mount* closest = nullptr;
    for (const Mount& mount : mounts_) {
        const bool holds = is_beneath(path, mount.point);
        if (holds && (closest == nullptr || mount.point.size() >= closest->point.size())) {
            closest = &mount;
        }
    }
    if (closest == nullptr) {
        return Error(ErrorKind::internal, "no mount of the table holds " + std::string(path));
    }
    const std::string_view rest = closest->point == "/" ? path : path.substr(closest->point.size());
    if (closest->root == "/") return rest.empty() ? std::string("/") : std::string(rest);
    return rest == "/" ? closest->root : closest->root + std::string(rest);
}

}  // namespace mechad::os
