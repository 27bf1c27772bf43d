// SPDX-License-Identifier: MIT
// The connection of one run: the order of its messages, its input, and what is known of the
// command when the conversation ends badly. Never waits.
#pragma once

#include <mechad/error.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "client/channel.hpp"
#include "proto/codec.hpp"

namespace mechad::client {

using RunMessage =
    std::variant<mechad::Started, mechad::Output, mechad::Changed, mechad::ExitReport>;

class RunChannel {
public:
    // Sent at once. What is sent and not read yet is what a signal of queue_signal stands behind.
    static constexpr std::size_t input_bytes_max = std::size_t{32} << 10;

    // Asks for the run; `socket` does not block. `fixed_input` follows the start of the command,
    // and then the end of its input; spawn.stdin_spec must be StdinStream for it.
    RunChannel(os::UniqueFd socket, const SpawnParams& spawn,
               std::optional<std::string> fixed_input = {});

    // What the daemon said next; nothing when more must be received first, or when the run is
    // over. Throws Error, the same at every later call.
    std::optional<RunMessage> take();

    // Throws the Error of take() again, if there was one.
    void check() const;

    // As Channel's; fixed input goes out meanwhile.
    bool wait(Time until);
    void exchange();
    void flush();

    // Whether input would be sent now: it is open, and all that was given before is sent.
    bool takes_input() const;
    // How many bytes were taken, input_bytes_max at most. Needs takes_input().
    std::size_t give_input(std::string_view bytes);
    // After the input that was given, and not before the start. Does nothing when it has ended.
    void end_input();
    bool is_input_open() const { return is_input_open_; }

    // In order with the input, and so not before the command reads that. See ControlCall.
    void queue_signal(int signal);

    // Closes the connection, which cancels the run.
    void close();

    const Channel& channel() const { return channel_; }
    // The run's name; empty before it has started.
    const std::string& run() const { return run_; }
    bool is_started() const { return !run_.empty(); }
    bool is_over() const { return is_over_; }
    Executed executed() const;

private:
    std::optional<RunMessage> understand(std::string_view line);
    void require_started(std::string_view what) const;
    void feed();

    Channel channel_;
    std::string run_;
    std::string fixed_input_;
    std::size_t fed_ = 0;  // of fixed_input_
    bool is_fed_ = false;  // from fixed_input_, not by give_input
    bool is_input_open_;
    bool is_eof_due_ = false;  // once the command has started
    bool is_over_ = false;
    std::optional<Error> failure_;
};

}  // namespace mechad::client
