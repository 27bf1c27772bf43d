// SPDX-License-Identifier: MIT
#include "daemon/os/mount_table.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

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

// Optional fields of any number end with "-"; then comes the type.
std::string_view type_of(std::string_view line) {
    const std::size_t dash = line.find(" - ");
    return dash == std::string_view::npos ? std::string_view() : field_of(line.substr(dash), 2);
}

template <class Number>
std::optional<Number> number_of(std::string_view text) {
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

// "8:17"
std::optional<dev_t> device_of(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto major = number_of<unsigned>(text.substr(0, colon));
    const auto minor = number_of<unsigned>(text.substr(colon + 1));
    if (!major || !minor) return std::nullopt;
    return gnu_dev_makedev(*major, *minor);
}

// proc(5): ID, parent ID, device, root, mount point, options, optional fields, "-", type, ...
std::optional<Mount> mount_of(std::string_view line) {
    const auto id = number_of<std::uint64_t>(field_of(line, 0));
    const auto parent = number_of<std::uint64_t>(field_of(line, 1));
    const auto device = device_of(field_of(line, 2));
    const std::string_view root = field_of(line, 3);
    const std::string_view point = field_of(line, 4);
    const std::string_view type = type_of(line);
    if (!id || !parent || !device || root.empty() || point.empty() || type.empty()) {
        return std::nullopt;
    }
    return Mount{*id, *parent, without_escapes(point),
                 Location{*device, without_escapes(root), without_escapes(type)}};
}

// `path` lies beneath the mount's point.
Location location_on(const Mount& mount, std::string_view path) {
    const std::string_view rest = mount.point == "/" ? path : path.substr(mount.point.size());
    Location location = mount.shown;
    if (rest.empty() || rest == "/") return location;
    if (location.path == "/") location.path.clear();
    location.path.append(rest);
    return location;
}

}  // namespace

Result<std::vector<Mount>> parse_mountinfo(std::string_view text) {
    std::vector<Mount> mounts;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        auto mount = mount_of(line);
        if (!mount) {
            return Error(ErrorKind::internal, "the mount table has a line of unknown form");
        }
        mounts.push_back(*std::move(mount));
    }
    std::stable_sort(mounts.begin(), mounts.end(),
                     [](const Mount& one, const Mount& other) { return one.point < other.point; });
    return mounts;
}

std::vector<std::string> prefixes_of(std::string_view path) {
    std::vector<std::string> prefixes = {"/"};
    for (std::size_t end = 1; path.size() > 1 && end != std::string_view::npos;) {
        end = path.find('/', end + 1);
        prefixes.emplace_back(path.substr(0, end));
    }
    return prefixes;
}

Result<MountTable> MountTable::make() {
    auto file = open_file("/proc/self/mountinfo", O_RDONLY);
    if (!file) return file.error();
    return MountTable(*std::move(file));
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
Result<bool> MountTable::refresh() {
    bool is_new = false;
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
        if (has_changed()) stale_ = true;
        if (!stale_) return is_new;
        if (auto read = read_once(); !read) return read.error();
        stale_ = false;
        is_new = true;
    }
    stale_ = true;
    return Error(ErrorKind::internal, "the mount table changes faster than it can be read");
}

std::span<const Mount> MountTable::below(std::string_view path) const {
    std::string prefix(path);
    if (!prefix.ends_with('/')) prefix.push_back('/');
    // "/" itself is no mount point below "/".
    const auto begin = std::upper_bound(
        mounts_.begin(), mounts_.end(), prefix,
        [](const std::string& wanted, const Mount& mount) { return wanted < mount.point; });
    const auto end = std::find_if_not(begin, mounts_.end(), [&prefix](const Mount& mount) {
        return mount.point.starts_with(prefix);
    });
    return {begin, end};
}

std::optional<std::string> MountTable::find_below(std::string_view path) const {
    const auto mounts = below(path);
    if (mounts.empty()) return std::nullopt;
    return mounts.front().point;
}

// As the kernel walks: from the root's mount on, always into the first mount on the way. One that
// lies under a later mount is thus not taken for what the path shows.
const Mount* MountTable::find_mount(std::string_view path) const {
    const Mount* here = nullptr;
    for (const Mount* next = mounts_.empty() ? nullptr : &mounts_.front(); next != nullptr;) {
        here = next;
        next = nullptr;
        for (const Mount& mount : mounts_) {
            if (mount.parent != here->id || &mount == here) continue;
            if (!is_beneath(path, mount.point)) continue;
            if (next == nullptr || mount.point.size() < next->point.size()) next = &mount;
        }
    }
    return here;
}

std::optional<Location> MountTable::locate(std::string_view path) const {
    const Mount* const mount = find_mount(path);
    if (mount == nullptr || !is_beneath(path, mount->point)) return std::nullopt;
    return location_on(*mount, path);
}

std::optional<Location> MountTable::locate(std::string_view path, std::uint64_t mount) const {
    const auto found = std::find_if(mounts_.begin(), mounts_.end(),
                                    [mount](const Mount& entry) { return entry.id == mount; });
    if (found == mounts_.end() || !is_beneath(path, found->point)) return std::nullopt;
    return location_on(*found, path);
}

}  // namespace mechad::os
