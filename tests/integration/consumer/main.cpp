// SPDX-License-Identifier: MIT
// A user of libmechad for tests: does one thing with it and says on stderr, as lines of name=value,
// what came of it. What a command wrote goes to stdout.
//     consumer SOCKET|- VERB ARGUMENT...
#include <poll.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <mechad/client.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace mechad::client;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

template <class Value>
void say(std::string_view name, const Value& value) {
    std::cerr << name << "=" << value << std::endl;
}

const char* name_of(Executed executed) {
    switch (executed) {
        case Executed::no: return "no";
        case Executed::yes: return "yes";
        case Executed::unknown: return "unknown";
    }
    return "?";
}

void say_error(const Error& error) {
    say("kind", to_string(error.kind()));
    say("executed", name_of(error.executed()));
    say("field", error.field());
    say("message", error.what());
}

void say_end(const ExitReport& report) {
    say("code", report.code);
    say("signal", report.signal);
    say("reason", static_cast<int>(report.reason));
    say("tree", report.tree == Tree::empty ? "empty" : "kill_pending");
    say("stdout_bytes", report.stdout_bytes);
}

void write_out(const std::string& bytes) {
    std::cout.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::cout.flush();
}

std::string read_all() { return {std::istreambuf_iterator<char>(std::cin), {}}; }

// Events into stdout and facts; true while there may be more.
bool take_waiting(Run& run) {
    while (const auto event = run.next(Time::min())) {
        if (const auto* const output = std::get_if<Output>(&*event)) write_out(output->bytes);
        if (const auto* const ended = std::get_if<Ended>(&*event)) say_end(*ended);
    }
    return !run.is_over();
}

SpawnRequest request_of(const std::string& workspace, const std::string& command) {
    return {.command = command, .workspace = workspace};
}

// A run whose output has begun.
Run start(const Client& mechad, const SpawnRequest& request) {
    Run run = mechad.spawn(request);
    while (const auto event = run.next()) {
        if (std::holds_alternative<Output>(*event)) break;
    }
    say("run", run.started()->run);
    return run;
}

// --- verbs; the arguments begin with the workspace ----------------------------------------------

// run WORKSPACE COMMAND [BYTES_MAX]: its input is ours, read whole.
void run_to_end(const Client& mechad, const Words& words) {
    SpawnRequest request = request_of(words.at(0), words.at(1));
    request.input = FixedInput{read_all()};
    CollectOptions options;
    if (words.size() > 2) options.bytes_max = std::stoul(words[2]);
    const Collected done = mechad.run(request, options);
    write_out(done.stdout_bytes);
    say("egress", done.started.box.capabilities.egress == Egress::none ? "none" : "chosen");
    say("is_cut", done.is_stdout_cut);
    say("stderr", done.stderr_bytes);
    say_end(done.exit);
}

// stream WORKSPACE COMMAND: our input, written while its output is taken.
void stream(const Client& mechad, const Words& words) {
    SpawnRequest request = request_of(words.at(0), words.at(1));
    request.input = StreamedInput{};
    Run run = mechad.spawn(request);
    const std::string input = read_all();
    std::string_view rest = input;
    while (!rest.empty() && take_waiting(run)) rest.remove_prefix(run.write_stdin(rest));
    run.close_stdin();
    run.relay([](const Event& event) {
        if (const auto* const output = std::get_if<Output>(&event)) write_out(output->bytes);
        if (const auto* const ended = std::get_if<Ended>(&event)) say_end(*ended);
    });
}

// poll WORKSPACE COMMAND: by a loop of our own.
void poll_along(const Client& mechad, const Words& words) {
    Run run = mechad.spawn(request_of(words.at(0), words.at(1)));
    while (take_waiting(run)) {
        pollfd state{run.fd(), run.poll_events(), 0};
        (void)::poll(&state, 1, -1);
    }
    say("fd", run.fd());
}

// congest WORKSPACE COMMAND: more input than COMMAND reads, then a SIGINT.
void congest(const Client& mechad, const Words& words) {
    SpawnRequest request = request_of(words.at(0), words.at(1));
    request.input = StreamedInput{};
    Run run = start(mechad, request);
    const std::string input(std::size_t{8} << 20, 'x');
    const std::size_t taken = run.write_stdin(input, in(500ms));
    say("is_congested", taken < input.size());
    say("is_sent", run.send_signal(SIGINT, in(20s)));
    while (take_waiting(run)) (void)run.wait_started();
}

// flood WORKSPACE COMMAND: input, while nobody takes the output of COMMAND.
void flood(const Client& mechad, const Words& words) {
    SpawnRequest request = request_of(words.at(0), words.at(1));
    request.input = StreamedInput{};
    Run run = mechad.spawn(request);
    const std::string input(std::size_t{8} << 20, 'x');
    say("is_partial", run.write_stdin(input) < input.size());
}

// cancel WORKSPACE COMMAND, drop WORKSPACE COMMAND: told when "go" comes on stdin.
void cancel(const Client& mechad, const Words& words) {
    Run run = start(mechad, request_of(words.at(0), words.at(1)));
    std::cin.get();
    run.cancel();
    say("is_over", run.is_over());
    say("has_event", run.next().has_value());
    std::cin.get();
}

void drop(const Client& mechad, const Words& words) {
    {
        Run run = start(mechad, request_of(words.at(0), words.at(1)));
        std::cin.get();
    }
    say("is_dropped", 1);
    std::cin.get();
}

// late WORKSPACE COMMAND: a deadline of our own, and the process stays.
void late(const Client& mechad, const Words& words) {
    try {
        (void)mechad.run(request_of(words.at(0), words.at(1)), {.until = in(500ms)});
    } catch (const Error& error) {
        say_error(error);
    }
    std::cin.get();
}

// wait WORKSPACE COMMAND: to its end, whatever it is.
void wait_end(const Client& mechad, const Words& words) {
    Run run = start(mechad, request_of(words.at(0), words.at(1)));
    while (const auto event = run.next()) {
        if (const auto* const ended = std::get_if<Ended>(&*event)) say_end(*ended);
    }
}

// misuse WORKSPACE: what the library refuses by itself, and a run that it leaves as it was.
void misuse(const Client& mechad, const Words& words) {
    SpawnRequest request = request_of(words.at(0), "cat");
    request.input = StreamedInput{};
    try {
        (void)mechad.run(request);
    } catch (const Error& error) {
        say("run_refused", error.field());
    }
    Run run = mechad.spawn(request);
    say("taken", run.write_stdin("abc"));
    run.close_stdin();
    try {
        (void)run.write_stdin("more");
    } catch (const Error& error) {
        say("write_refused", error.field());
    }
    run.relay([](const Event& event) {
        if (const auto* const output = std::get_if<Output>(&event)) write_out(output->bytes);
    });
    say("code", run.exit()->code);
    say("is_sent", run.send_signal(SIGINT));
}

void status(const Client& mechad, const Words&) {
    const Status said = mechad.status(in(20s));
    say("version", said.version);
    say("backend", said.box.backend);
    say("confined", said.box.confined);
    say("socket", said.socket_path);
    say("passed", said.preflight.state == PreflightState::passed);
    say("claims", said.box.claims.size());
    say("grace_ms", said.limits.kill_grace.count());
    say("has_timeout", said.limits.timeout.has_value());
}

void recheck(const Client& mechad, const Words&) {
    say("passed", mechad.recheck().state == PreflightState::passed);
}

void describe(const Client& mechad, const Words& words) {
    const Description said = mechad.describe({.workspace = words.at(0)});
    say("backend", said.box.backend);
    say("egress", said.box.capabilities.egress == Egress::none ? "none" : "chosen");
    say("last_bind", said.binds.back().path);
}

void list(const Client& mechad, const Words&) {
    for (const RunSummary& run : mechad.list()) {
        say("run", run.run);
        say("label", run.label);
        say("workspace", run.workspace);
    }
}

void list_recent(const Client& mechad, const Words&) {
    const auto runs = mechad.list_recent();
    say("run", runs.at(0).run);
    say("label", runs.at(0).label);
    say("code", runs.at(0).code);
    say("exited", runs.at(0).reason == EndReason::exited);
}

// kill RUN [SIGNAL]
void kill_run(const Client& mechad, const Words& words) {
    if (words.size() > 1) {
        mechad.kill(words.at(0), std::stoi(words[1]));
    } else {
        mechad.kill(words.at(0));
    }
    say("is_done", 1);
}

const std::map<std::string, std::function<void(const Client&, const Words&)>> verbs = {
    {"run", run_to_end},    {"stream", stream}, {"poll", poll_along}, {"congest", congest},
    {"flood", flood},       {"cancel", cancel}, {"drop", drop},       {"late", late},
    {"wait", wait_end},     {"misuse", misuse}, {"status", status},   {"recheck", recheck},
    {"describe", describe}, {"list", list},     {"kill", kill_run},   {"list-recent", list_recent},
};

}  // namespace

int main(int argc, char** argv) {
    const Words words(argv + 1, argv + argc);
    try {
        const Client mechad = words.at(0) == "-" ? Client() : Client(words[0]);
        verbs.at(words.at(1))(mechad, Words(words.begin() + 2, words.end()));
    } catch (const Error& error) {
        say_error(error);
        return 3;
    }
    return 0;
}
