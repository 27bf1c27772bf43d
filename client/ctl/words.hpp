// SPDX-License-Identifier: MIT
// What several commands say to people, in the same words.
#pragma once

#include <string>

#include "client/ctl/paper.hpp"
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

inline const char* word_for(Egress egress) { return egress == Egress::none ? "none" : "chosen"; }

inline const char* word_for_network(bool is_open) { return is_open ? "open" : "closed"; }

inline void print_state(const PreflightReport& preflight) {
    const bool is_failed = preflight.state == PreflightState::failed;
    const bool is_passed = preflight.state == PreflightState::passed;
    print_fact("state", word_for(preflight.state),
               is_failed   ? Tone::bad
               : is_passed ? Tone::good
                           : Tone::plain);
    if (!is_failed) return;
    print_fact("reason", preflight.reason);
    print_fact("remedy", preflight.remedy);
}

inline void print_backend(const std::string& name, bool is_confined) {
    print_fact("backend", name + (is_confined ? "" : ", NOTHING IS CONFINED"),
               is_confined ? Tone::plain : Tone::bad);
}

inline void print_capabilities(const Capabilities& said) {
    print_fact("egress", word_for(said.egress));
    print_fact("reads", said.reaches_beyond_workspace ? "can leave the workspace"
                                                      : "workspace and system directories only");
}

}  // namespace mechad::ctl
