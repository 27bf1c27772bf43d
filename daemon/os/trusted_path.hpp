// SPDX-License-Identifier: MIT
// Whether a name keeps meaning what it means now.
#pragma once

#include <string>

#include "proto/result.hpp"

namespace mechad::os {

// No other user but root can lead the absolute path `directory` elsewhere: each directory on the
// way, links followed, belongs to this user or to root, and others cannot write there, or it is
// sticky and the entry is not theirs. The directory itself is judged as well.
Result<void> check_trusted_path(const std::string& directory);

}  // namespace mechad::os
