// SPDX-License-Identifier: MIT
#include "daemon/launch/launcher.hpp"

#include <fcntl.h>

#include <vector>

#include "daemon/launch/spawn.hpp"
#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace {

// A failure to make a pipe or the like, told as a failed box.
Error as_setup_failure(const Error& cause) {
    return Error(ErrorKind::sandbox_setup_failed, cause.message())
        .with_step(cause.step(), cause.os_errno());
}

// The generated files, alive until the launcher has inherited them.
struct GeneratedFiles {
    os::UniqueFd passwd;
    os::UniqueFd group;
    os::UniqueFd options;
};

class DescriptorTable {
public:
    DescriptorTable(const Box& box, const GeneratedFiles& files, int init_binary)
        : box_(box), files_(files), init_binary_(init_binary) {}

    int operator()(const FdRef& ref) const {
        switch (ref.role) {
            case FdRole::init_binary: return init_binary_;
            case FdRole::workspace: return box_.workspace().fd.get();
            case FdRole::extra_bind: return box_.extra_binds()[ref.index].place.fd.get();
            case FdRole::passwd_file: return files_.passwd.get();
            case FdRole::group_file: return files_.group.get();
        }
        return -1;
    }

private:
    const Box& box_;
    const GeneratedFiles& files_;
    int init_binary_;
};

// The options as `--args` takes them, each ended by NUL; descriptors are added to `kept`.
std::string fill_in_options(const BoxPlan& plan, const DescriptorTable& table,
                            std::vector<int>& kept) {
    std::string text;
    for (const auto& word : plan.options) {
        if (const auto* ref = std::get_if<FdRef>(&word)) {
            const int fd = table(*ref);
            kept.push_back(fd);
            text += std::to_string(fd);
        } else {
            text += std::get<std::string>(word);
        }
        text.push_back('\0');
    }
    return text;
}

}  // namespace

Launcher::Launcher(const boost::asio::any_io_executor& executor, Reaper& reaper,
                   os::UniqueFd init_binary)
    : executor_(executor),
      reaper_(reaper),
      init_binary_(std::move(init_binary)),
      null_(::open("/dev/null", O_RDWR | O_CLOEXEC)) {}

Result<std::unique_ptr<LiveBox>> Launcher::launch(const Box& box, const BoxPlan& plan,
                                                  std::function<void()> on_news) {
    if (plan.maker == Maker::launcher && plan.launcher.empty()) {
        return Error(ErrorKind::sandbox_setup_failed, "the launcher of this backend is not usable")
            .with_step("launcher", 0);
    }
    auto control = os::make_control_pair();
    if (!control) return as_setup_failure(control.error());
    auto& [our_end, init_end] = *control;
    const std::string init_number = std::to_string(init_end.get());

    SpawnFds fds{
        .in = null_.get(), .out = null_.get(), .err = null_.get(), .kept = {init_end.get()}};
    os::Pipe diagnostics;
    GeneratedFiles files;
    std::string program;
    std::vector<std::string> argv;

    if (plan.maker == Maker::init_itself) {
        program = "/proc/self/fd/" + std::to_string(init_binary_.get());
        argv = {"mechad-init", "fd", init_number};
    } else {
        auto pipe = os::make_pipe();
        if (!pipe) return as_setup_failure(pipe.error());
        diagnostics = std::move(*pipe);
        // Read only after the launcher ended, but a descendant may hold the other end for ever.
        if (auto set = os::set_nonblocking(diagnostics.read_end.get()); !set) {
            return as_setup_failure(set.error());
        }
        fds.err = diagnostics.write_end.get();

        auto passwd = os::make_memfd("passwd", plan.passwd);
        if (!passwd) return as_setup_failure(passwd.error());
        files.passwd = std::move(*passwd);
        auto group = os::make_memfd("group", plan.group);
        if (!group) return as_setup_failure(group.error());
        files.group = std::move(*group);
        const DescriptorTable table(box, files, init_binary_.get());
        auto options = os::make_memfd("options", fill_in_options(plan, table, fds.kept));
        if (!options) return as_setup_failure(options.error());
        files.options = std::move(*options);
        fds.kept.push_back(files.options.get());

        program = plan.launcher;
        argv = {plan.launcher, "--args",       std::to_string(files.options.get()),
                "--",          plan.init_path, "fd",
                init_number};
    }

    auto pid = spawn(program, argv, {}, fds);
    if (!pid) return pid.error();
    auto child = reaper_.adopt(*pid);
    if (!child) return as_setup_failure(child.error());
    return std::make_unique<LiveBox>(executor_, std::move(our_end), std::move(diagnostics.read_end),
                                     std::move(*child), reaper_, std::move(on_news));
}

}  // namespace mechad
