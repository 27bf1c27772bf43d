// SPDX-License-Identifier: MIT
#include "client/ctl/ask.hpp"
#include "client/ctl/commands.hpp"

namespace mechad::ctl {

int kill(const std::string& socket_path, const KillParams& params) {
    const auto answer = ask(socket_path, params, decode_kill_report);
    if (answer) return 0;
    const int code = fail(answer.error());
    return answer.error().kind() == ErrorKind::no_such_run ? exit_no_such_run : code;
}

}  // namespace mechad::ctl
