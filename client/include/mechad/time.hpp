// SPDX-License-Identifier: MIT
// How long a call may take. Points in time and not durations, so that one serves a whole sequence.
#pragma once

#include <chrono>

namespace mechad::client {

using Time = std::chrono::steady_clock::time_point;

inline constexpr Time never = Time::max();

// A point from now on; `never` for what lies beyond the clock.
inline Time in(std::chrono::milliseconds duration) {
    const Time now = std::chrono::steady_clock::now();
    return duration < never - now ? now + duration : never;
}

inline bool has_passed(Time until) {
    return until != never && until <= std::chrono::steady_clock::now();
}

}  // namespace mechad::client
