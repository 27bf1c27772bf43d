// SPDX-License-Identifier: MIT
#include "daemon/run.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <iterator>

#include "daemon/box_report.hpp"
#include "daemon/launch/command_message.hpp"
#include "daemon/launch/start_failure.hpp"
#include "daemon/log.hpp"
#include "proto/signals.hpp"

namespace mechad {

namespace asio = boost::asio;
using Clock = Lifecycle::Clock;

Run::Run(const RunServices& services, const Admission& admission, RunClient& client,
         ActiveRun& entry)
    : services_(services),
      admission_(admission),
      client_(client),
      entry_(entry),
      life_({.kill_grace = services.kill_grace, .timeout = admission.command.timeout}),
      wakeup_(services.executor),
      cleared_(services.executor),
      tasks_(services.executor),
      pumps_(services.executor) {}

Run::~Run() {
    entry_.count_output = nullptr;
    entry_.stop = nullptr;
    entry_.stop_now = nullptr;
    entry_.signal = nullptr;
    entry_.lower = nullptr;
}

asio::awaitable<Result<ExitReport>> Run::execute(const Proofs& proofs) {
    reach_from_table();
    plan_ = services_.backend->plan(admission_.box, *services_.host);
    if (auto launched = launch(); !launched) co_return launched.error();
    const auto proved = co_await prove_box();
    if (!proved) {
        co_await clear_after_launcher();
        co_return proved.error();
    }
    const auto started = co_await start_command();
    if (!started) co_return started.error();

    std::exception_ptr failure;  // the tasks below work on this object: join them first
    try {
        co_await tell_started(proofs);
        co_await relay_until_end();
    } catch (...) {
        failure = std::current_exception();
    }
    co_await end_streams();
    if (failure) std::rethrow_exception(failure);
    note_late_lowering();
    look_for_sockets();
    ExitReport report = make_report();
    advise(report);
    co_return report;
}

// From here on kill, a stopping daemon and other runs can reach this one.
void Run::reach_from_table() {
    entry_.count_output = [this] {
        if (!stdout_ || !stderr_) return ActiveRun::Output{};
        return ActiveRun::Output{stdout_->bytes(), stderr_->bytes()};
    };
    entry_.stop = [this](EndReason reason) {
        life_.stop(reason);
        wakeup_.notify();
    };
    entry_.stop_now = [this] {
        life_.stop_now(EndReason::daemon_stopping);
        wakeup_.notify();
    };
    entry_.signal = [this](int signal) {
        // Init takes signals once there is a command; until then they are kept.
        if (life_.is_started()) {
            box_->send_signal(signal);
        } else {
            early_signals_.push_back(signal);
        }
    };
    entry_.lower = [this] {
        // What lowers before `started` is told in it.
        if (worst_.egress == Egress::chosen) return;
        worst_.egress = Egress::chosen;
        has_news_of_egress_ = true;
        wakeup_.notify();
    };
}

Result<void> Run::launch() {
    auto box = services_.launcher->launch(admission_.box, plan_, [this] { note_news(); });
    if (!box) return box.error();
    box_ = std::move(*box);
    return {};
}

// Nothing of the command is sent to a box that did not show its own namespaces: a launcher that
// isolates nothing gets as far as here.
asio::awaitable<Result<void>> Run::prove_box() {
    const BoxNews& news = box_->news();
    const auto is_stopped = [this] { return life_.stop_reason().has_value(); };
    while (!news.ready && !news.is_lost && !is_stopped()) co_await wakeup_.wait();
    if (is_stopped()) co_return ended_before_start();
    if (!news.ready) {
        // The launcher says why before it ends.
        while (!news.is_ended) co_await wakeup_.wait();
        co_return setup_failure("made no box");
    }
    for (const auto ns : plan_.own_namespaces) {
        const auto inside = news.ready->namespaces[ns];
        if (inside != 0 && inside != services_.own_namespaces.namespaces[ns]) continue;
        box_proof_ = BoxProof::missing;
        co_return Error(ErrorKind::sandbox_setup_failed, std::string("the box has no ") +
                                                             init_wire::namespace_names[ns] +
                                                             " namespace of its own")
            .with_step(proof_step, 0);
    }
    box_proof_ = BoxProof::shown;
    co_return Result<void>();
}

// It made no box, or not the one it should have. What it started becomes a child of ours.
asio::awaitable<void> Run::clear_after_launcher() {
    box_->kill_launcher();
    while (!box_->news().is_ended) co_await wakeup_.wait();
    (void)co_await services_.reaper->sweep_orphans();
}

Result<CommandStdio> Run::open_stdio() {
    auto out = os::make_pipe();
    if (!out) return out.error();
    auto err = os::make_pipe();
    if (!err) return err.error();
    for (const auto* pipe : {&*out, &*err}) {
        if (auto set = os::set_nonblocking(pipe->read_end.get()); !set) return set.error();
    }
    CommandStdio stdio{
        .in = {}, .out = std::move(out->write_end), .err = std::move(err->write_end)};

    const auto& command = admission_.command;
    if (std::holds_alternative<StdinNull>(command.stdin_spec)) {
        // A placeholder: init opens the box's own /dev/null, since whoever holds the host's could,
        // as root, change its mode for all.
        auto null = os::open_file("/dev/null", O_RDONLY);
        if (!null) return null.error();
        stdio.in = std::move(*null);
    } else {
        auto in = os::make_pipe();
        if (!in) return in.error();
        if (auto set = os::set_nonblocking(in->write_end.get()); !set) return set.error();
        stdio.in = std::move(in->read_end);
        stdin_ = std::make_unique<StdinFeed>(services_.executor, std::move(in->write_end));
        if (const auto* text = std::get_if<StdinInline>(&command.stdin_spec)) {
            stdin_->push(text->bytes);
            stdin_->end();
        }
    }

    const auto pump = [&](os::UniqueFd read_end, OutputStream stream) {
        OutputPump::Target target{.stream = stream,
                                  .client = &client_,
                                  .limit_bytes = command.output_limit_bytes,
                                  .on_limit = {}};
        if (stream == OutputStream::err) target.tail_bytes = stderr_tail_bytes;
        if (command.on_output_limit == OnOutputLimit::kill) {
            target.on_limit = [this] {
                life_.stop(EndReason::output_limit);
                wakeup_.notify();
            };
        }
        return std::make_unique<OutputPump>(services_.executor, std::move(read_end),
                                            std::move(target));
    };
    stdout_ = pump(std::move(out->read_end), OutputStream::out);
    stderr_ = pump(std::move(err->read_end), OutputStream::err);
    return stdio;
}

asio::awaitable<Result<void>> Run::start_command() {
    if (client_.is_gone()) life_.stop(EndReason::cancelled);
    if (life_.stop_reason()) co_return ended_before_start();
    auto stdio = open_stdio();
    if (!stdio) co_return stdio.error();
    files_before_ = AutoExecFiles::look(admission_.box.workspace().fd);
    auto body = encode_command(admission_.box, admission_.command, plan_.hardening,
                               services_.filter, services_.command_file_limits);
    const auto sent = co_await box_->send_command(std::move(body), std::move(*stdio));
    if (!sent) co_return setup_failure("lost its box: " + sent.error().message());

    const BoxNews& news = box_->news();
    while (!news.is_started && !news.failed && !news.is_lost) co_await wakeup_.wait();
    if (news.failed) co_return start_failure(*news.failed, admission_, *services_.backend);
    if (!news.is_started) co_return setup_failure("lost its box before the command started");
    life_.started(Clock::now());
    for (const int signal : early_signals_) box_->send_signal(signal);
    note_news();
    co_return Result<void>();
}

asio::awaitable<void> Run::tell_started(const Proofs& proofs) {
    const Started started{
        .run = entry_.id,
        .pid = box_->news().command_pid,
        .box = make_box_report(*services_.backend, admission_.box, proofs, entry_.lowered_because)};
    worst_ = started.box.capabilities;
    entry_.egress = worst_.egress;
    entry_.pid = static_cast<pid_t>(started.pid);
    // Those of preflight have no id, and are no news.
    if (!entry_.id.empty()) {
        log_run_started({.run_id = entry_.id,
                         .backend = std::string(services_.backend->name),
                         .workspace = entry_.workspace});
    }
    const bool is_told = co_await client_.started(started);
    if (!is_told) life_.stop(EndReason::cancelled);
}

asio::awaitable<void> Run::relay_until_end() {
    pumps_.start(carry(*stdout_));
    pumps_.start(carry(*stderr_));
    if (stdin_) tasks_.start(stdin_->carry());
    tasks_.start(take_input());
    tasks_.start(watch_client());

    for (;;) {
        if (std::exchange(has_news_of_egress_, false)) tasks_.start(tell_lowered());
        const auto step = life_.next(Clock::now());
        if (step.action == Lifecycle::Action::finish) break;
        if (step.action == Lifecycle::Action::wait) {
            co_await wakeup_.wait(step.until);
        } else {
            act(step.action);
        }
    }
}

asio::awaitable<void> Run::carry(OutputPump& pump) {
    co_await pump.carry();
    if (stdout_->is_ended() && stderr_->is_ended()) life_.output_closed();
    wakeup_.notify();
}

void Run::act(Lifecycle::Action action) {
    switch (action) {
        case Lifecycle::Action::terminate:
            // CONT lets a stopped command see its TERM.
            box_->send_signal(SIGTERM);
            box_->send_signal(SIGCONT);
            return;
        case Lifecycle::Action::kill_tree: return box_->kill_tree();
        case Lifecycle::Action::kill_box: return box_->kill_launcher();
        case Lifecycle::Action::wait:
        case Lifecycle::Action::finish: return;
    }
}

// The tree is empty, or given up: what is in the pipes is all there will be.
asio::awaitable<void> Run::end_streams() {
    stdout_->finish();
    stderr_->finish();
    if (stdin_) stdin_->stop();
    co_await pumps_.join();
    is_over_ = true;
    client_.stop_input();
    co_await tasks_.join();
}

void Run::note_news() {
    const BoxNews& news = box_->news();
    if (life_.is_started()) {
        if (news.exited) life_.main_ended(Clock::now());
        if (news.is_empty) life_.tree_emptied();
        if (news.is_lost && !news.is_empty && !std::exchange(is_clearing_, true)) {
            tasks_.start(clear_after_init());
        }
    }
    cleared_.notify();
    wakeup_.notify();
}

// Init died and cannot say that the tree is empty. What it leaves becomes a child of ours.
asio::awaitable<void> Run::clear_after_init() {
    box_->kill_launcher();
    while (!box_->news().is_ended) co_await cleared_.wait();
    const bool is_clear = co_await services_.reaper->sweep_orphans();
    if (is_clear) life_.tree_emptied();
    life_.box_gone();
    wakeup_.notify();
}

asio::awaitable<void> Run::take_input() {
    for (;;) {
        if (stdin_) co_await stdin_->wait_room();
        const auto input = co_await client_.next_input();
        if (const auto* bytes = std::get_if<StdinMessage>(&input)) {
            if (stdin_) stdin_->push(bytes->bytes);
            if (stdin_ && bytes->eof) stdin_->end();
        } else if (const auto* signal = std::get_if<SignalMessage>(&input)) {
            box_->send_signal(signal->signal);
        } else if (std::holds_alternative<HalfClosed>(input)) {
            if (stdin_) stdin_->end();
            co_return;
        } else {
            if (!is_over_) life_.stop(EndReason::cancelled);
            wakeup_.notify();
            co_return;
        }
    }
}

asio::awaitable<void> Run::watch_client() {
    co_await client_.wait_gone();
    if (is_over_) co_return;
    life_.stop(EndReason::cancelled);
    wakeup_.notify();
}

asio::awaitable<void> Run::tell_lowered() {
    const Changed changed{worst_, entry_.lowered_because};
    (void)co_await client_.changed(changed);
}

// No `changed` comes any more once the streams are at their end.
void Run::note_late_lowering() {
    if (!has_news_of_egress_) return;
    end_notes_.push_back(lowered_note(entry_.lowered_because));
}

// The second look; the first was at admission.
void Run::look_for_sockets() {
    if (worst_.egress == Egress::chosen) return;
    const auto exposure = find_exposure(*services_.bound_sockets, admission_.box);
    if (!exposure) return;
    worst_.egress = Egress::chosen;
    entry_.egress = Egress::chosen;
    end_notes_.push_back(lowered_note(*exposure));
}

ExitReport Run::make_report() const {
    const BoxNews& news = box_->news();
    ExitReport report;
    report.notes = end_notes_;
    if (news.exited) {
        report.exit_code = news.exited->code;
        report.exit_signal = news.exited->signal;
        report.usage.cpu = std::chrono::milliseconds(news.exited->cpu_us / 1000);
        report.usage.max_rss_kb = static_cast<std::int64_t>(news.exited->max_rss_kb);
    } else {
        report.exit_signal = SIGKILL;
        report.notes.push_back("the box was killed from outside; how the command ended is unknown");
    }
    report.reason = life_.stop_reason().value_or(report.exit_signal == 0 ? EndReason::exited
                                                                         : EndReason::signaled);
    report.capabilities = worst_;
    report.tree = life_.is_tree_empty() ? TreeState::empty : TreeState::kill_pending;
    report.truncated_stdout = stdout_->is_truncated();
    report.truncated_stderr = stderr_->is_truncated();
    report.stdout_bytes = stdout_->bytes();
    report.stderr_bytes = stderr_->bytes();
    report.usage.wall = std::chrono::duration_cast<std::chrono::milliseconds>(life_.ended_at() -
                                                                              life_.started_at());
    return report;
}

// Once nothing of the run is left that could still change a file.
void Run::advise(ExitReport& report) const {
    const Box& box = admission_.box;
    auto notes = AutoExecFiles::look(box.workspace().fd).notes_since(files_before_);
    std::move(notes.begin(), notes.end(), std::back_inserter(report.notes));
    if (report.exit_code == 0 && report.exit_signal == 0) return;
    report.hints = make_hints({.stderr_lines = stderr_->tail_lines(),
                               .exit_code = report.exit_code,
                               .exit_signal = report.exit_signal},
                              view_of(*services_.backend, box, *services_.host, *services_.policy));
}

Error Run::ended_before_start() const {
    const bool is_stopping = life_.stop_reason() == EndReason::daemon_stopping;
    return Error(is_stopping ? ErrorKind::shutting_down : ErrorKind::policy_denied,
                 "the run was ended before its command started");
}

// Of the launcher, in words that diagnosis.cpp knows.
Error Run::setup_failure(const std::string& what) const {
    const BoxNews& news = box_->news();
    std::string text(services_.backend->name);
    text += news.is_late ? " did not make the box within " +
                               std::to_string(box_setup_deadline.count()) + " s and was stopped"
                         : " " + what;
    if (news.is_ended && !news.is_late && WIFSIGNALED(news.wait_status)) {
        text += "; it was killed by " + signal_name(WTERMSIG(news.wait_status));
    } else if (news.is_ended && WIFEXITED(news.wait_status)) {
        text += "; it ended with exit code " + std::to_string(WEXITSTATUS(news.wait_status));
    }
    const std::string said = box_->read_diagnostics();
    if (!said.empty()) text += " and said: " + said;
    return Error(ErrorKind::sandbox_setup_failed, std::move(text), {},
                 "mechad-ctl status shows what preflight found; mechad-ctl recheck looks again")
        .with_step("launch", 0);
}

}  // namespace mechad
