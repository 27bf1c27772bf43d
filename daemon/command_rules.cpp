// SPDX-License-Identifier: MIT
#include "daemon/command_rules.hpp"

#include "daemon/os/path_gate.hpp"
#include "daemon/os/printable.hpp"

namespace mechad {
namespace {

constexpr std::string_view file_hint = "write it to a file in the workspace, or send it on stdin";

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

// With its NUL, `size` bytes must be at most what execve(2) takes as one string.
bool is_too_long(std::size_t size) { return size >= exec_string_bytes_max; }

std::string length_limit() {
    return "is too long: the limit of one argument or variable is " +
           std::to_string(exec_string_bytes_max - 1) + " bytes";
}

Error invalid(const std::string& field, std::string_view why, std::string_view hint = {}) {
    return Error(ErrorKind::invalid_request, field + " " + std::string(why), field,
                 std::string(hint));
}

Result<std::vector<std::string>> shell_argv(const std::string& command) {
    if (has_nul(command)) return invalid("command", "holds a NUL character");
    if (is_too_long(command.size())) return invalid("command", length_limit(), file_hint);
    return std::vector<std::string>{"bash", "-lc", command};
}

Error bad_cwd(std::string_view cwd, std::string_view why, const std::string& workspace) {
    return Error(ErrorKind::bad_cwd,
                 "the working directory " + os::quoted(cwd, 200) + " " + std::string(why), "cwd",
                 "give a path relative to the workspace, or one below " + os::printable(workspace));
}

}  // namespace

Result<std::vector<std::string>> argv_of(const SpawnParams& request) {
    if (request.command.has_value() == request.argv.has_value()) {
        return invalid("command", "or argv must be given, and not both");
    }
    if (request.command) return shell_argv(*request.command);
    if (request.argv->empty() || request.argv->front().empty()) {
        return invalid("argv", "must begin with the name of a program");
    }
    for (std::size_t i = 0; i < request.argv->size(); ++i) {
        const std::string& argument = (*request.argv)[i];
        const std::string field = "argv[" + std::to_string(i) + "]";
        if (has_nul(argument)) return invalid(field, "holds a NUL character");
        if (is_too_long(argument.size())) return invalid(field, length_limit(), file_hint);
    }
    return *request.argv;
}

Result<std::string> cwd_of(const std::optional<std::string>& cwd, const std::string& workspace) {
    if (!cwd) return std::string(".");
    if (cwd->empty()) return bad_cwd(*cwd, "is empty", workspace);
    const bool is_absolute = cwd->front() == '/';
    // Beneath "/", a relative path has the same meaning and the same faults.
    const auto clean = os::clean_path(is_absolute ? *cwd : "/" + *cwd);
    if (!clean) {
        return bad_cwd(*cwd, "must be free of \"..\" and NUL, and shorter than a path may be",
                       workspace);
    }
    if (!is_absolute) return *clean == "/" ? std::string(".") : clean->substr(1);
    if (*clean == workspace) return std::string(".");
    if (!clean->starts_with(workspace + "/")) {
        return bad_cwd(*cwd, "is not inside the workspace", workspace);
    }
    return clean->substr(workspace.size() + 1);
}

Result<std::vector<std::string>> env_of(const SpawnParams& request, Environment base) {
    for (const auto& [name, value] : request.env) {
        const std::string field = "env." + os::printable(name, 200);
        if (name.empty() || name.find('=') != std::string::npos || has_nul(name)) {
            return invalid(field, "must have a name without \"=\" and NUL");
        }
        if (has_nul(value)) return invalid(field, "holds a NUL character");
        if (is_too_long(name.size() + 1 + value.size())) return invalid(field, length_limit());
        base[name] = value;
    }
    std::vector<std::string> env;
    env.reserve(base.size());
    for (const auto& [name, value] : base) {
        env.push_back(std::string(name).append("=").append(value));
    }
    return env;
}

}  // namespace mechad
