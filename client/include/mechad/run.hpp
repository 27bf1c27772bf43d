// SPDX-License-Identifier: MIT
// A command that runs, and the connection that it lives on: when a Run is destroyed before its
// end, or this process dies, the daemon ends the command.
#pragma once

#include <cstddef>
#include <functional>
#include <mechad/export.hpp>
#include <mechad/reports.hpp>
#include <mechad/time.hpp>
#include <memory>
#include <optional>
#include <string_view>

namespace mechad::client {

// Made by Client::spawn. Belongs to one thread at a time; other threads may reach the run by its
// name (Client::kill). Only what says that it waits blocks. After a move, the source may only be
// destroyed or assigned to. A call that throws Error has ended the run for this object, unless it
// says otherwise: every later call that would talk to the daemon throws the same.
class MECHAD_CLIENT_EXPORT Run {
public:
    // How much output is kept while write_stdin waits and nobody takes events.
    static constexpr std::size_t waiting_bytes_max = std::size_t{4} << 20;

    Run(Run&& other) noexcept;
    Run& operator=(Run&& other) noexcept;
    ~Run();  // cancel()

    // --- events ---

    // The next event: Started first, Ended last. Waits for it until `until` (in the past: takes
    // what is there). Nothing when the time passed first, or when there is no more to come:
    // is_over() tells. A command that writes waits while nobody calls this.
    // Error: the refusal, when the command never ran; connection_lost; bad_answer.
    std::optional<Event> next(Time until = never);

    // Waits for Started, which next() still gives. Nothing when the time passed first.
    const Started* wait_started(Time until = never);

    // Gives every event to `on_event` until the run is over; false when the time passed first. The
    // clock is looked at after each event, whether or not more have arrived.
    // What `on_event` throws goes through, and the run goes on.
    bool relay(const std::function<void(const Event&)>& on_event, Time until = never);

    // Known when next() has given them.
    const std::optional<Started>& started() const;
    const std::optional<ExitReport>& exit() const;
    bool is_over() const;  // Ended was given, the run was cancelled, or an Error has ended it

    // --- input; of a request with StreamedInput ---

    // Hands `bytes` to the daemon, waiting while the command does not read, and returns how many
    // it took: fewer than given when `until` passed, when the run has ended, or when
    // waiting_bytes_max of events wait for next(). A command may read no more before its output
    // is taken, so that a caller that got fewer calls next() before it goes on. What was taken and
    // is not sent yet goes out with later calls. Bytes that the command does not read before it
    // ends are lost, as in a pipe. Without StreamedInput, and after close_stdin: Error
    // invalid_request, which leaves the run as it is.
    [[nodiscard]] std::size_t write_stdin(std::string_view bytes, Time until = never);

    // The end, after all that was written, and not before next() or wait_started() has seen the
    // start. Does not wait.
    void close_stdin();

    // --- ends ---

    // Sends a signal (SIGINT, ...) to the process group of the command, also when it does not read
    // its input: by a connection of its own. Waits for the daemon's word, and for Started before.
    // False when the run has ended already. Errors of this call, deadline among them, leave the
    // run as it is: they are of the signal, and executed() of them is `yes`.
    bool send_signal(int signal, Time until = never);

    // Closes the connection: the daemon ends the command (TERM, the grace of its policy, KILL), and
    // nothing more is heard of it. Client::kill(started()->run) ends it too, and Ended comes.
    void cancel();

    // --- for a loop of one's own ---

    // Waits of one's own: poll fd() for poll_events(), asked anew each time, then call next() with
    // a time in the past until it gives nothing. -1 when over.
    int fd() const;
    short poll_events() const;

private:
    friend class Client;
    class Impl;
    explicit Run(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace mechad::client
