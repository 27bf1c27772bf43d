// SPDX-License-Identifier: MIT
// Drives a real mechad-init over a socketpair, as the daemon does, and turns everything that could
// hang into a failed test: each wait has a deadline.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "daemon/init/init_wire.hpp"
#include "daemon/os/unique_fd.hpp"

namespace mechad::test {

// A Command before it is encoded; the defaults run in "/" and check nothing.
struct CommandSpec {
    std::vector<std::string> argv;
    std::vector<std::string> env = {"PATH=/usr/bin:/bin"};
    std::string workspace = "/";
    std::string cwd = ".";
    std::uint32_t flags = 0;
    std::vector<sock_filter> filter = {};
    std::uint64_t workspace_dev = 0;
    std::uint64_t workspace_ino = 0;
    std::uint64_t nofile_soft = 0;
    std::uint64_t nofile_hard = 0;
};
std::string encode(const CommandSpec& spec);

struct Message {
    init_wire::Type type = init_wire::Type::ready;
    std::string body;
    pid_t sender = 0;  // as SCM_CREDENTIALS says

    template <class Body>
    Body as() const {
        Body value{};
        if (body.size() == sizeof value) std::memcpy(&value, body.data(), sizeof value);
        return value;
    }
};

struct InitOptions {
    std::vector<std::string> launcher = {};               // words before init's own
    std::optional<std::uint64_t> process_count_max = {};  // RLIMIT_NPROC of init
};

class InitDriver {
public:
    explicit InitDriver(const InitOptions& options = {});
    InitDriver(const InitDriver&) = delete;
    InitDriver& operator=(const InitDriver&) = delete;
    ~InitDriver();

    pid_t pid() const { return pid_; }

    void send(init_wire::Type type, const std::string& body, int fd_count = 0);
    // A message that says it has `bytes` of body, with three descriptors.
    void announce(init_wire::Type type, std::size_t bytes, const std::string& body);
    void finish_sending();
    void command(const CommandSpec& spec) { send(init_wire::Type::command, encode(spec), 3); }
    void signal(int number);
    void kill_tree() { send(init_wire::Type::kill_tree, {}); }
    void close_control() { control_.reset(); }

    // The next message; none at the end of the stream, or when ten seconds pass.
    std::optional<Message> receive();
    // The next message, which must be of this type.
    template <class Body>
    Body expect(init_wire::Type type) {
        last_ = receive().value_or(Message{});
        if (last_.type != type) {
            unexpected(type);
            return {};
        }
        return last_.as<Body>();
    }
    void expect_empty_and_exit();
    const Message& last() const { return last_; }

    // What the command wrote to stdout and stderr until all writers are gone.
    std::string read_output() {
        (void)wait_for_end_of_output();
        return output_text_;
    }
    // True when all writers are gone before the deadline, those of the test included.
    bool wait_for_end_of_output();
    // Waits until the command wrote this, which shows how far it got.
    bool wait_for_output(const std::string& text);

    // Status of wait4; -1 when init (or its launcher) did not end within ten seconds.
    int wait_exit();

private:
    void send_bytes(const std::string& bytes, int fd_count);
    void unexpected(init_wire::Type wanted);
    enum class Read { some, end, nothing };
    Read read_some(int timeout_ms);

    os::UniqueFd control_;
    os::Pipe output_;
    os::UniqueFd null_;
    std::string output_text_;
    Message last_;
    pid_t pid_ = -1;
};

// Ready, Command, Hello, Started: the command runs. False, with a failed check, otherwise.
bool start(InitDriver& init, const CommandSpec& spec);

// Starts a shell script, and runs it to its end.
CommandSpec shell(const std::string& script);
struct Finished {
    init_wire::Exited exited{};
    std::string output;
};
Finished run(const CommandSpec& spec, const InitOptions& options = {});

// The Failed that a Command is answered with; step none when it ran.
init_wire::Failed failure_of(const CommandSpec& spec, const InitOptions& options = {});

// True when no process is left below the test, a subreaper: whatever init lost would be there.
bool nothing_survives();

// A directory of its own, removed with what is in it.
class ScratchDirectory {
public:
    ScratchDirectory();
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    ~ScratchDirectory();
    const std::string& path() const { return path_; }
    std::string file(const std::string& name, const std::string& content, mode_t mode) const;

private:
    std::string path_;
};

}  // namespace mechad::test
