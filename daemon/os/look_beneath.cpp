// SPDX-License-Identifier: MIT
#include "daemon/os/look_beneath.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace mechad::os {

namespace {

UniqueFd open_beneath(const UniqueFd& directory, const char* name, int flags) {
    struct open_how how {};
    how.flags = static_cast<__u64>(O_CLOEXEC | O_NOFOLLOW | flags);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
    return UniqueFd(
        static_cast<int>(::syscall(SYS_openat2, directory.get(), name, &how, sizeof how)));
}

struct CloseDirectory {
    void operator()(DIR* directory) const { (void)::closedir(directory); }
};

FileStamp stamp_of(const struct stat& found) {
    constexpr std::int64_t second_ns = 1'000'000'000;
    return {.id = {found.st_dev, found.st_ino},
            .changed_ns = found.st_ctim.tv_sec * second_ns + found.st_ctim.tv_nsec,
            .size = found.st_size,
            .mode = found.st_mode};
}

// Of what could not be opened or looked at. With O_PATH, no link is a fault but one on the way.
bool is_hidden_by(int error) { return error != ENOENT && error != ENOTDIR && error != ELOOP; }

// False, with errno, when one of them cannot be looked at.
bool read_entries(DIR* directory, std::size_t read_max, std::string_view ignored_suffix,
                  Listing& listing) {
    std::size_t read_count = 0;
    errno = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else reads this DIR
    while (const struct dirent* const entry = ::readdir(directory)) {
        const std::string_view name = entry->d_name;
        if (name == "." || name == "..") continue;
        if (read_count++ == read_max) {
            listing.is_cut = true;
            return true;
        }
        if (!ignored_suffix.empty() && name.ends_with(ignored_suffix)) continue;
        struct stat found {};
        const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
        if (::fstatat(::dirfd(directory), entry->d_name, &found, flags) == 0) {
            listing.entries.emplace(name, stamp_of(found));
        } else if (is_hidden_by(errno)) {
            return false;
        }
        errno = 0;  // readdir leaves it alone at the end
    }
    return errno == 0;
}

}  // namespace

Sight look_beneath(const UniqueFd& directory, const char* name) {
    const UniqueFd fd = open_beneath(directory, name, O_PATH);
    struct stat found {};
    if (!fd || ::fstat(fd.get(), &found) != 0) {
        return {.stamp = std::nullopt, .is_hidden = is_hidden_by(errno)};
    }
    return {.stamp = stamp_of(found)};
}

Listing list_beneath(const UniqueFd& directory, const char* name, std::size_t read_max,
                     std::string_view ignored_suffix) {
    Listing hidden{.entries = {}, .is_hidden = true};
    UniqueFd fd = open_beneath(directory, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (!fd) return is_hidden_by(errno) ? hidden : Listing();
    const std::unique_ptr<DIR, CloseDirectory> open(::fdopendir(fd.get()));
    if (!open) return hidden;
    (void)fd.release();  // closedir closes it
    Listing listing;
    return read_entries(open.get(), read_max, ignored_suffix, listing) ? listing : hidden;
}

}  // namespace mechad::os
