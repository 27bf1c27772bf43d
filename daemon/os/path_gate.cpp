// SPDX-License-Identifier: MIT
#include "daemon/os/path_gate.hpp"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "daemon/os/printable.hpp"
#include "daemon/os/syscalls.hpp"

namespace mechad::os {
namespace {

// Deeper than any path can name; a bound for the walk, should ".." never arrive.
constexpr std::size_t lineage_max = 4096;

Error refusal(std::string_view path, std::string_view why, std::string hint = {}) {
    std::string message = printable(path);
    message.append(" ").append(why);
    return Error(ErrorKind::bad_workspace, std::move(message), {}, std::move(hint));
}

UniqueFd open_without_links(int base, const std::string& path, int flags) {
    struct open_how how {};
    how.flags = static_cast<__u64>(O_PATH | O_CLOEXEC | flags);
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    return UniqueFd(static_cast<int>(::syscall(SYS_openat2, base, path.c_str(), &how, sizeof how)));
}

// Only for the hint: the answer may be stale by the time it is read, and the gate checks again.
std::string canonical_hint(const std::string& path) {
    const std::unique_ptr<char, decltype(&std::free)> canonical(::realpath(path.c_str(), nullptr),
                                                                &std::free);
    if (!canonical) return "give the path without symbolic links";
    return std::string("if that is what you mean, use ") + printable(canonical.get());
}

Error open_failure(const std::string& path, int error) {
    switch (error) {
        case ELOOP:
            return refusal(path, "has a symbolic link in it, which could be changed later",
                           canonical_hint(path));
        case ENOENT: return refusal(path, "does not exist");
        case ENOTDIR: return refusal(path, "is not a directory");
        case EACCES:
            return refusal(path, "cannot be reached: a directory on the way denies access");
        case ENOSYS:
        case EPERM:
            return refusal(path,
                           "cannot be opened safely: this kernel, or the container that mechad "
                           "runs in, does not allow openat2(2)",
                           "use Linux 5.8 or later, and a container runtime that allows openat2");
        default:
            return refusal(path, "cannot be opened: " + errno_text(error) + " (openat2)")
                .with_step("openat2", error);
    }
}

struct Identity {
    FileId id;
    mode_t mode = 0;
    std::uint64_t mount = 0;
};

Result<Identity> identify(const UniqueFd& fd) {
    struct statx found {};
    // No call to a server of the file system: the kernel knows type and inode of what is open.
    const int flags = AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
    if (::statx(fd.get(), "", flags, STATX_TYPE | STATX_INO | STATX_MNT_ID, &found) != 0) {
        return os_error("identify an opened place", errno, "statx");
    }
    return Identity{{gnu_dev_makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino},
                    found.stx_mode,
                    found.stx_mnt_id};
}

Result<void> check_access(const std::string& path, const UniqueFd& fd, int mode) {
    if (::faccessat(fd.get(), "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0) return {};
    const int error = errno;
    return refusal(path, "cannot be used by this user: " + errno_text(error));
}

Result<Place> place_of_directory(std::string path, UniqueFd fd) {
    if (auto access = check_access(path, fd, R_OK | X_OK); !access) return access.error();
    const auto self = identify(fd);
    if (!self) return self.error();
    auto lineage = find_lineage(fd);
    if (!lineage) return lineage.error();
    return Place{std::move(path), std::move(fd), self->id, self->mount, *std::move(lineage), true};
}

Result<Place> place_of_file(std::string path, UniqueFd fd, const Identity& self,
                            const UniqueFd& parent) {
    if (auto access = check_access(path, fd, R_OK); !access) return access.error();
    auto lineage = find_lineage(parent);
    if (!lineage) return lineage.error();
    lineage->insert(lineage->begin(), self.id);
    return Place{std::move(path), std::move(fd), self.id, self.mount, *std::move(lineage), false};
}

// A file does not know its directory, so the directory is opened first.
Result<Place> open_directory_or_file(std::string path) {
    const std::size_t slash = path.rfind('/');
    const std::string parent_path = slash == 0 ? "/" : path.substr(0, slash);
    const UniqueFd parent = open_without_links(AT_FDCWD, parent_path, O_DIRECTORY);
    if (!parent) return open_failure(path, errno);
    const std::string name = path.substr(slash + 1);
    UniqueFd fd = open_without_links(parent.get(), name.empty() ? "." : name, 0);
    if (!fd) return open_failure(path, errno);

    const auto identity = identify(fd);
    if (!identity) return identity.error();
    if (S_ISDIR(identity->mode)) return place_of_directory(std::move(path), std::move(fd));
    if (!S_ISREG(identity->mode)) return refusal(path, "is neither a directory nor a regular file");
    return place_of_file(std::move(path), std::move(fd), *identity, parent);
}

}  // namespace

// The mount is compared as well: the root of a bind mount may have the (device, inode) of the
// directory above it and would look like "/", the only directory that is its own parent.
Result<std::vector<FileId>> find_lineage(const UniqueFd& directory) {
    std::vector<FileId> lineage;
    auto here = identify(directory);
    if (!here) return here.error();
    UniqueFd opened;
    int fd = directory.get();
    while (lineage.size() < lineage_max) {
        lineage.push_back(here->id);
        UniqueFd parent(::openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (!parent) return os_error("open a parent directory", errno, "openat");
        auto above = identify(parent);
        if (!above) return above.error();
        if (above->id == here->id && above->mount == here->mount) return lineage;
        here = above;
        opened = std::move(parent);
        fd = opened.get();
    }
    return Error(ErrorKind::bad_workspace, "the directory lies too deep");
}

std::string find_path(const UniqueFd& fd) {
    std::array<char, PATH_MAX> path;
    const std::string link = "/proc/self/fd/" + std::to_string(fd.get());
    const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
    return size <= 0 ? std::string() : std::string(path.data(), static_cast<std::size_t>(size));
}

bool lies_in(const Place& place, const FileId& ancestor) {
    return std::find(place.lineage.begin(), place.lineage.end(), ancestor) != place.lineage.end();
}

Result<std::string> clean_path(std::string_view path) {
    const std::string_view shown = path.substr(0, 200);
    if (path.empty()) return Error(ErrorKind::bad_workspace, "the path is empty");
    if (path.find('\0') != std::string_view::npos) return refusal(shown, "holds a NUL character");
    if (path.front() != '/') return refusal(shown, "is not absolute", "begin it with \"/\"");
    std::string clean;
    while (!path.empty()) {
        path.remove_prefix(1);
        const std::string_view part = path.substr(0, path.find('/'));
        path.remove_prefix(part.size());
        if (part.empty() || part == ".") continue;
        if (part == "..") return refusal(shown, "has \"..\" in it", "give the path without \"..\"");
        clean.append("/").append(part);
    }
    if (clean.size() >= PATH_MAX) return refusal(shown, "... is longer than a path may be");
    return clean.empty() ? std::string("/") : clean;
}

Result<Place> open_place(std::string_view path, PlaceType accepted) {
    auto clean = clean_path(path);
    if (!clean) return clean.error();
    if (accepted == PlaceType::directory_or_file) return open_directory_or_file(*std::move(clean));
    UniqueFd fd = open_without_links(AT_FDCWD, *clean, O_DIRECTORY);
    if (!fd) return open_failure(*clean, errno);
    return place_of_directory(*std::move(clean), std::move(fd));
}

}  // namespace mechad::os
