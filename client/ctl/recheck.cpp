// SPDX-License-Identifier: MIT
#include "client/ctl/ask.hpp"
#include "client/ctl/commands.hpp"
#include "client/ctl/words.hpp"

namespace mechad::ctl {

int recheck(const std::string& socket_path) {
    const auto answer = ask(socket_path, RecheckParams{}, decode_preflight_report);
    if (!answer) return fail(answer.error());
    print_state(answer->report);
    return answer->report.state == PreflightState::passed ? 0 : 1;
}

}  // namespace mechad::ctl
