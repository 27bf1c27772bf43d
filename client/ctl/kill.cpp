// SPDX-License-Identifier: MIT
#include "client/ctl/ask.hpp"
#include "client/ctl/commands.hpp"

namespace mechad::ctl {

int kill(const std::string& socket_path, const KillParams& params) {
    const auto answer = ask(socket_path, params);
    const auto report = answer ? decode_kill_report(*answer) : answer.error();
    if (report) return 0;
    complain(report.error().message(), report.error().hint());
    return report.error().kind() == ErrorKind::no_such_run ? exit_no_such_run : exit_refused;
}

}  // namespace mechad::ctl
