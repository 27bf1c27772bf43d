// SPDX-License-Identifier: MIT
// For coroutines that nobody joins: what escapes from one leaves the event loop and ends the
// daemon, loudly, instead of leaving it half alive.
#pragma once

#include <exception>

namespace mechad {

inline constexpr auto rethrow = [](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);
};

}  // namespace mechad
