// SPDX-License-Identifier: MIT
// Which file a socket is bound to: its name alone does not say, as another socket may have taken
// the place since.
#pragma once

#include <sys/stat.h>

#include <optional>

#include "daemon/os/unique_fd.hpp"

namespace mechad::os {

// Whether `file` is what the AF_UNIX socket `fd` was bound to. Empty when that cannot be told: the
// kernel lacks unix_diag, or the file system has device numbers of its own kind (overlay, btrfs).
std::optional<bool> is_file_of(const UniqueFd& fd, const struct stat& file);

}  // namespace mechad::os
