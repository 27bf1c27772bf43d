// SPDX-License-Identifier: MIT
#include "daemon/run_table.hpp"

#include <algorithm>

#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace {

// Once: the first reason stays.
void lower(ActiveRun& closed, std::string because) {
    if (!closed.lowered_because.empty()) return;
    closed.egress = Egress::chosen;
    closed.lowered_because = std::move(because);
    if (closed.lower) closed.lower();
}

std::string clause_of(const ActiveRun& reader) {
    if (reader.network) {
        return "run " + reader.id + " has the network open and can read what this run writes";
    }
    return "run " + reader.id +
           " can read what this run writes, and a run with the network open can read what that one "
           "writes";
}

// The nearest to an open run first. A run that is read passes on what it reads.
std::vector<Leak> find_readable(std::vector<ActiveRun*> readers, std::vector<ActiveRun*> closed,
                                const SharedGround& ground) {
    std::vector<Leak> leaks;
    for (std::size_t i = 0; i < readers.size(); ++i) {
        const ActiveRun& reader = *readers[i];
        const auto unread =
            std::stable_partition(closed.begin(), closed.end(), [&](const ActiveRun* writer) {
                return !is_overlapping(reader.footprint, writer->footprint, ground);
            });
        for (auto found = unread; found != closed.end(); ++found) {
            leaks.push_back({*found, clause_of(reader)});
        }
        readers.insert(readers.end(), unread, closed.end());
        closed.erase(unread, closed.end());
    }
    return leaks;
}

}  // namespace

RunTable::Ticket::Ticket(RunTable& table, std::unique_ptr<ActiveRun> run)
    : table_(&table), run_(std::move(run)) {
    table_->runs_.emplace(run_->id, run_.get());
    table_->count_changed();
}

RunTable::Ticket::~Ticket() {
    if (run_) table_->forget(*run_);
}

Result<RunTable::Ticket> RunTable::enter(std::string label, std::string workspace,
                                         Footprint footprint, bool is_closed,
                                         std::function<void(Footprint&)> locate) {
    if (is_shutting_down_) return Error(ErrorKind::shutting_down, "mechad is stopping");
    if (runs_.size() >= runs_max_) {
        return Error(ErrorKind::overloaded,
                     "all " + std::to_string(runs_max_) + " runs of this daemon are in use", {},
                     "try again when one ends, or raise daemon.runs_max");
    }
    auto run = std::make_unique<ActiveRun>();
    run->id = os::random_hex(8);
    run->label = std::move(label);
    run->workspace = std::move(workspace);
    run->footprint = std::move(footprint);
    run->network = !is_closed;
    run->egress = is_closed ? Egress::none : Egress::chosen;
    run->started = std::chrono::steady_clock::now();

    if (run->footprint.exposure) lower(*run, *run->footprint.exposure);
    for (Leak& leak : find_leaks(*run)) lower(*leak.run, std::move(leak.because));
    run->locate = std::move(locate);
    return Ticket(*this, std::move(run));
}

std::optional<std::string> RunTable::find_lowering(const Footprint& closed) const {
    if (closed.exposure) return closed.exposure;
    ActiveRun asking;
    asking.footprint = closed;
    for (Leak& leak : find_leaks(asking)) {
        if (leak.run == &asking) return std::move(leak.because);
    }
    return std::nullopt;
}

// The newcomer's place was found just now. The others' are found again only if somebody could read
// for somebody.
std::vector<Leak> RunTable::find_leaks(ActiveRun& newcomer) const {
    std::vector<ActiveRun*> open;
    std::vector<ActiveRun*> closed;
    bool has_unlowered = !newcomer.network && newcomer.lowered_because.empty();
    for (const auto& [id, run] : runs_) {
        (run->network ? open : closed).push_back(run);
        has_unlowered = has_unlowered || (!run->network && run->lowered_because.empty());
    }
    const bool is_quiet = !has_unlowered || (open.empty() && !newcomer.network);
    if (is_quiet) return {};
    for (const auto& [id, run] : runs_) {
        if (run->locate) run->locate(run->footprint);
    }
    (newcomer.network ? open : closed).push_back(&newcomer);
    return find_readable(std::move(open), std::move(closed), *ground_);
}

void RunTable::lower_all(const std::string& because) {
    for (const auto& [id, run] : runs_) {
        if (!run->network) lower(*run, because);
    }
}

ActiveRun* RunTable::find(const std::string& id) const {
    const auto found = runs_.find(id);
    return found == runs_.end() ? nullptr : found->second;
}

std::vector<RunSummary> RunTable::list() const {
    const auto now = std::chrono::steady_clock::now();
    std::vector<RunSummary> summaries;
    for (const auto& [id, run] : runs_) {
        const auto output = run->count_output ? run->count_output() : ActiveRun::Output{};
        summaries.push_back(
            {.run = id,
             .pid = run->pid,
             .label = run->label,
             .workspace = run->workspace,
             .network = run->network,
             .egress = run->egress,
             .age = std::chrono::duration_cast<std::chrono::milliseconds>(now - run->started),
             .stdout_bytes = output.stdout_bytes,
             .stderr_bytes = output.stderr_bytes});
    }
    return summaries;
}

std::vector<EndedRun> RunTable::list_recent() const {
    const auto now = std::chrono::steady_clock::now();
    std::vector<EndedRun> runs;
    runs.reserve(recent_.size());
    for (const Remembered& remembered : recent_) {
        runs.push_back(remembered.run);
        runs.back().ended_ago =
            std::chrono::duration_cast<std::chrono::milliseconds>(now - remembered.ended);
    }
    return runs;
}

// At the end of a ticket: what is no more alive is listed as ended in the same moment.
void RunTable::forget(const ActiveRun& run) {
    runs_.erase(run.id);
    count_changed();
    if (!run.report) return;
    recent_.push_front({.run = {.run = run.id,
                                .label = run.label,
                                .workspace = run.workspace,
                                .network = run.network,
                                .egress = run.report->capabilities.egress,
                                .exit_code = run.report->exit_code,
                                .exit_signal = run.report->exit_signal,
                                .reason = run.report->reason},
                        .ended = std::chrono::steady_clock::now()});
    if (recent_.size() > recent_max) recent_.pop_back();
}

void RunTable::shut_down() {
    is_shutting_down_ = true;
    for (const auto& [id, run] : runs_) {
        if (run->stop) run->stop(EndReason::daemon_stopping);
    }
}

void RunTable::shut_down_now() {
    shut_down();
    for (const auto& [id, run] : runs_) {
        if (run->stop_now) run->stop_now();
    }
}

}  // namespace mechad
