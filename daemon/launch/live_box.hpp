// SPDX-License-Identifier: MIT
// The handle of a running box: the daemon's half of the conversation in init_wire.hpp. Dropping
// it closes the control socket, on which init empties the tree.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/init/init_wire.hpp"
#include "daemon/launch/reaper.hpp"
#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad {

// The command's own ends of its stdio.
struct CommandStdio {
    os::UniqueFd in;
    os::UniqueFd out;
    os::UniqueFd err;
};

// From the start of the launcher to exec. When it passes, the launcher is killed and the box is
// lost. Long, since a loaded machine is no failure; a launcher that hangs is met by it.
inline constexpr std::chrono::seconds box_setup_deadline{10};

// What init has told so far, and what became of the launcher.
struct BoxNews {
    std::optional<init_wire::Ready> ready;
    pid_t init_pid = 0;     // in the daemon's pid namespace, by SCM_CREDENTIALS
    pid_t command_pid = 0;  // likewise; known before `is_started`
    bool is_started = false;
    std::optional<init_wire::Failed> failed;
    std::optional<init_wire::Exited> exited;
    bool is_empty = false;
    bool is_lost = false;   // the control socket ended, or spoke nonsense
    bool is_late = false;   // the setup deadline passed
    bool is_ended = false;  // the launcher was reaped
    int wait_status = 0;    // its end, as waitpid(2)
};

class LiveBox {
public:
    // `control` is the daemon's end (SO_PASSCRED set), `diagnostics` the read end of the
    // launcher's stderr (may be empty). `on_news` is called after each change of news().
    LiveBox(const boost::asio::any_io_executor& executor, os::UniqueFd control,
            os::UniqueFd diagnostics, std::shared_ptr<Child> child, Reaper& reaper,
            std::function<void()> on_news);
    ~LiveBox();
    LiveBox(const LiveBox&) = delete;
    LiveBox& operator=(const LiveBox&) = delete;

    const BoxNews& news() const;

    // Sends the Command with its three descriptors, which are closed here whatever happens.
    // `body` is made by encode_command.
    boost::asio::awaitable<Result<void>> send_command(std::string body, CommandStdio stdio);
    void send_signal(int signal);
    void kill_tree();
    // SIGKILL to the launcher, for a box whose init does not answer.
    void kill_launcher();

    // What the launcher printed on stderr, at most 4 KiB, control bytes replaced.
    std::string read_diagnostics();

private:
    struct State;
    std::shared_ptr<State> state_;
    Reaper& reaper_;
};

}  // namespace mechad
