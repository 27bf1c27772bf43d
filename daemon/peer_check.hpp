// SPDX-License-Identifier: MIT
// Whom the daemon serves: processes of its own user, outside every box of any mechad.
#pragma once

#include <optional>

#include "proto/result.hpp"

namespace mechad {

// Why whoever connected is refused; empty when it is welcome. Kind overloaded: for want of
// descriptors it could not be looked at.
std::optional<Error> refuse_peer(int socket);

}  // namespace mechad
