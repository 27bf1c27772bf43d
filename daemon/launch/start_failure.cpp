// SPDX-License-Identifier: MIT
#include "daemon/launch/start_failure.hpp"

#include <cerrno>

#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace {

using init_wire::Step;

Error exec_failure(int error, const std::string& program, const std::string& text) {
    switch (error) {
        case ENOENT:
        case ENOTDIR:
            return Error(ErrorKind::exec_not_found,
                         "there is no program " + program + " inside the box", {},
                         "name a program on the command's PATH, or by a path inside the box");
        case E2BIG:
            return Error(ErrorKind::invalid_request,
                         "argv and env are together longer than the kernel takes: " + text, "argv");
        case ENOEXEC:
            return Error(ErrorKind::exec_not_permitted,
                         program + " is not in a format that can be executed", {},
                         "a script needs a first line such as #!/bin/sh");
        default:
            return Error(ErrorKind::exec_not_permitted, "cannot execute " + program + ": " + text);
    }
}

}  // namespace

std::string_view to_string(Step step) {
    return step < Step::count ? init_wire::step_names[static_cast<std::size_t>(step)] : "unknown";
}

Error start_failure(const init_wire::Failed& failed, const Admission& admission,
                    const Backend& backend) {
    const std::string& program = admission.command.argv.front();
    const std::string text = os::errno_text(failed.error);
    const auto with_step = [&](Error error) {
        return std::move(error).with_step(std::string(to_string(failed.step)), failed.error);
    };
    switch (failed.step) {
        case Step::workspace:
            return with_step(Error(ErrorKind::bad_workspace,
                                   "the workspace cannot be opened inside the box: " + text,
                                   "workspace"));
        case Step::workspace_identity:
            return with_step(Error(ErrorKind::bad_workspace,
                                   "the workspace inside the box is not the directory that was "
                                   "admitted",
                                   "workspace", "something replaced it meanwhile; try again"));
        case Step::cwd:
            return with_step(Error(ErrorKind::bad_cwd,
                                   "cwd is not a directory beneath the workspace (links are not "
                                   "followed): " +
                                       text,
                                   "cwd"));
        case Step::exec: return with_step(exec_failure(failed.error, program, text));
        case Step::exec_interpreter:
            return with_step(
                Error(ErrorKind::exec_not_found,
                      "the interpreter that " + program + " names does not exist inside the box"));
        default:
            return with_step(Error(ErrorKind::sandbox_setup_failed,
                                   std::string(backend.name) + ": the step " +
                                       std::string(to_string(failed.step)) + " failed: " + text));
    }
}

}  // namespace mechad
