// SPDX-License-Identifier: MIT
#include <mechad/client.hpp>
#include <utility>

#include "client/control_call.hpp"
#include "client/convert.hpp"
#include "client/failure.hpp"
#include "client/run_impl.hpp"
#include "client/socket.hpp"

namespace mechad::client {

namespace {

// The answer to a question, read by `decode`.
template <class Report>
Report ask_for(const std::string& socket_path, const ControlCall::Params& params, Time until,
               Result<Report> (*decode)(const JsonValue&)) {
    auto report = decode(ask(socket_path, params, until));
    if (!report) throw bad_answer(report.error().message(), Executed::no);
    return *std::move(report);
}

void append_some(std::string& gathered, bool& is_cut, const std::string& bytes,
                 std::size_t bytes_max) {
    const std::size_t room = bytes_max - gathered.size();
    is_cut = is_cut || bytes.size() > room;
    gathered.append(bytes, 0, room);
}

void gather(Event event, std::size_t bytes_max, Collected& into) {
    if (auto* const output = std::get_if<Output>(&event)) {
        if (output->stream == Stream::out) {
            append_some(into.stdout_bytes, into.is_stdout_cut, output->bytes, bytes_max);
        } else {
            append_some(into.stderr_bytes, into.is_stderr_cut, output->bytes, bytes_max);
        }
    } else if (auto* const started = std::get_if<Started>(&event)) {
        into.started = std::move(*started);
    } else if (auto* const changed = std::get_if<Changed>(&event)) {
        into.changes.push_back(std::move(*changed));
    } else {
        into.exit = std::get<Ended>(std::move(event));
    }
}

}  // namespace

Client::Client() : Client(find_socket_path()) {}

Client::Client(std::string socket_path) : socket_path_(std::move(socket_path)) {}

Collected Client::run(const SpawnRequest& request, const CollectOptions& options) const {
    if (std::holds_alternative<StreamedInput>(request.input)) {
        throw Error(ErrorKind::invalid_request, Executed::no,
                    "a run that is waited for has no streamed input",
                    {.field = "input", .hint = "use FixedInput, or spawn"});
    }
    Run run = spawn(request, options.until);
    Collected collected;
    while (auto event = run.next(options.until)) {
        gather(*std::move(event), options.bytes_max, collected);
        if (has_passed(options.until)) break;
    }
    if (!run.exit()) {
        throw late("the end of the run", run.started() ? Executed::yes : Executed::unknown);
    }
    return collected;
}

Run Client::spawn(const SpawnRequest& request, Time until) const {
    WireRequest wire = to_wire(request);
    const bool is_input_fixed = wire.fixed_input.has_value();
    auto impl = std::make_unique<Run::Impl>(
        socket_path_, RunChannel(connect_to_daemon(socket_path_, until), wire.spawn,
                                 std::move(wire.fixed_input)));
    impl->is_input_fixed = is_input_fixed;
    // A refusal that comes before all was sent is for next() to tell.
    const RunChannel& channel = impl->channel;
    Turns turns(until);
    while (channel.channel().unsent_bytes() > 0 && !channel.channel().is_send_over() &&
           !channel.channel().is_receive_over()) {
        if (channel.channel().waiting_bytes() > Run::waiting_bytes_max) {
            throw bad_answer("much, before it was asked anything", channel.executed());
        }
        if (!turns.take() || !impl->channel.wait(until)) {
            throw late("the daemon's attention", channel.executed());
        }
    }
    return Run(std::move(impl));
}

Description Client::describe(const SpawnRequest& request, Time until) const {
    return from_wire(
        ask_for(socket_path_, to_wire_description(request), until, decode_describe_report));
}

Status Client::status(Time until) const {
    return from_wire(ask_for(socket_path_, StatusParams{}, until, decode_status_report));
}

Preflight Client::recheck(Time until) const {
    return from_wire(ask_for(socket_path_, RecheckParams{}, until, decode_preflight_report));
}

std::vector<RunSummary> Client::list(Time until) const {
    ListReport report = ask_for(socket_path_, ListParams{}, until, decode_list_report);
    std::vector<RunSummary> runs;
    runs.reserve(report.runs.size());
    for (auto& run : report.runs) runs.push_back(from_wire(std::move(run)));
    return runs;
}

std::vector<EndedRun> Client::list_recent(Time until) const {
    ListReport report =
        ask_for(socket_path_, ListParams{.recent = true}, until, decode_list_report);
    std::vector<EndedRun> runs;
    if (!report.recent) return runs;
    runs.reserve(report.recent->size());
    for (auto& run : *report.recent) runs.push_back(from_wire(std::move(run)));
    return runs;
}

void Client::kill(const std::string& run, std::optional<int> signal, Time until) const {
    (void)ask(socket_path_, KillParams{run, signal}, until);
}

}  // namespace mechad::client
