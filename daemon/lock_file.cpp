// SPDX-License-Identifier: MIT
#include "daemon/lock_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "daemon/os/syscalls.hpp"

namespace mechad {

Result<os::UniqueFd> take_lock(const std::string& path, const Error& held,
                               const std::string& way_out) {
    const Error not_ours(ErrorKind::internal, path + " is not a plain file of this user", {},
                         "remove it if nothing needs it, or " + way_out);
    auto lock = os::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (!lock) {
        const int reason = lock.error().os_errno();
        if (reason == ELOOP || reason == EISDIR || reason == ENXIO) return not_ours;
        return Error(ErrorKind::internal, lock.error().message(), {}, way_out);
    }
    struct stat found {};
    if (::fstat(lock->get(), &found) != 0) return os::os_error("look at " + path, errno, "fstat");
    if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid()) return not_ours;
    if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) return held;
    return lock;
}

}  // namespace mechad
