// SPDX-License-Identifier: MIT
// What several commands say to people, in the same words.
#pragma once

#include <iostream>

#include "proto/messages.hpp"

namespace mechad::ctl {

inline const char* word_for(PreflightState state) {
    switch (state) {
        case PreflightState::running: return "preflight is running";
        case PreflightState::passed: return "proved";
        case PreflightState::failed: return "REFUSING every run";
    }
    return "unknown";
}

inline void print_state(const PreflightReport& preflight) {
    std::cout << "state        " << word_for(preflight.state) << "\n";
    if (preflight.state != PreflightState::failed) return;
    std::cout << "reason       " << preflight.reason << "\n"
              << "remedy       " << preflight.remedy << "\n";
}

inline void print_capabilities(const Capabilities& said) {
    std::cout << "egress       " << (said.egress == Egress::none ? "none" : "chosen") << "\n"
              << "reads        "
              << (said.reaches_beyond_workspace ? "can leave the workspace"
                                                : "workspace and system directories only")
              << "\n";
}

}  // namespace mechad::ctl
