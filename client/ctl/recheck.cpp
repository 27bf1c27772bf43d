// SPDX-License-Identifier: MIT
#include "client/ctl/ask.hpp"
#include "client/ctl/commands.hpp"
#include "client/ctl/words.hpp"

namespace mechad::ctl {

int recheck(const std::string& socket_path) {
    const auto answer = ask(socket_path, RecheckParams{});
    const auto preflight = answer ? decode_preflight_report(*answer) : answer.error();
    if (!preflight) {
        complain(preflight.error().message(), preflight.error().hint());
        return exit_refused;
    }
    print_state(*preflight);
    return preflight->state == PreflightState::passed ? 0 : 1;
}

}  // namespace mechad::ctl
