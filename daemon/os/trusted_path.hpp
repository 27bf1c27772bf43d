// SPDX-License-Identifier: MIT
// Whether a name keeps meaning what it means now.
#pragma once

#include <sys/types.h>

#include <string>

#include "proto/result.hpp"

namespace mechad::os {

// No other user but root can lead the absolute path `directory` elsewhere: each directory on the
// way, links followed, belongs to this user or to root, and others cannot write there, or it is
// sticky and the entry is not theirs. The directory itself is judged as well.
Result<void> check_trusted_path(const std::string& directory);

// Whether `uid` may stand for users other than that of the name: it is the overflow uid, and this
// user namespace does not map all. Whoever has it as its own cannot tell itself from others.
bool is_uid_of_many(uid_t uid);

}  // namespace mechad::os
