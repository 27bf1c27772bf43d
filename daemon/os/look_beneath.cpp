// SPDX-License-Identifier: MIT
#include "daemon/os/look_beneath.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

}  // namespace

std::optional<FileStamp> look_beneath(const UniqueFd& directory, const char* name) {
    const UniqueFd fd = open_beneath(directory, name, O_PATH);
    struct stat found {};
    if (!fd || ::fstat(fd.get(), &found) != 0) return std::nullopt;
    return stamp_of(found);
}

Listing list_beneath(const UniqueFd& directory, const char* name, std::size_t entries_max,
                     std::string_view ignored_suffix) {
    Listing listing;
    UniqueFd fd = open_beneath(directory, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (!fd) return listing;
    const std::unique_ptr<DIR, CloseDirectory> open(::fdopendir(fd.get()));
    if (!open) return listing;
    (void)fd.release();  // closedir closes it
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else reads this DIR
    while (const struct dirent* const entry = ::readdir(open.get())) {
        const std::string_view entry_name = entry->d_name;
        if (entry_name == "." || entry_name == "..") continue;
        if (!ignored_suffix.empty() && entry_name.ends_with(ignored_suffix)) continue;
        if (listing.entries.size() == entries_max) {
            listing.is_cut = true;
            break;
        }
        struct stat found {};
        const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
        if (::fstatat(::dirfd(open.get()), entry->d_name, &found, flags) != 0) continue;
        listing.entries.emplace(entry_name, stamp_of(found));
    }
    return listing;
}

}  // namespace mechad::os
