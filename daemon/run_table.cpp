// SPDX-License-Identifier: MIT
#include "daemon/run_table.hpp"

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

std::string clause_of(const ActiveRun& open) {
    return "run " + open.id + " has the network open and can read what this run writes";
}

}  // namespace

RunTable::Ticket::Ticket(RunTable& table, std::unique_ptr<ActiveRun> run)
    : table_(&table), run_(std::move(run)) {
    table_->runs_.emplace(run_->id, run_.get());
}

RunTable::Ticket::~Ticket() {
    if (run_) table_->runs_.erase(run_->id);
}

Result<RunTable::Ticket> RunTable::enter(std::string label, std::string workspace,
                                         Footprint footprint, bool is_closed) {
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

    if (is_closed) {
        if (auto because = find_lowering(run->footprint)) lower(*run, *std::move(because));
    } else {
        for (const auto& [id, other] : runs_) {
            if (other->network || !is_overlapping(run->footprint, other->footprint, ground_)) {
                continue;
            }
            lower(*other, clause_of(*run));
        }
    }
    return Ticket(*this, std::move(run));
}

std::optional<std::string> RunTable::find_lowering(const Footprint& closed) const {
    if (closed.exposure) return closed.exposure;
    for (const auto& [id, run] : runs_) {
        if (run->network && is_overlapping(run->footprint, closed, ground_)) {
            return clause_of(*run);
        }
    }
    return std::nullopt;
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
