// SPDX-License-Identifier: MIT
#include "daemon/run_table.hpp"

#include <algorithm>

#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace {

bool holds(const std::vector<os::FileId>& ids, const os::FileId& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

bool is_beneath(const std::string& path, const std::string& directory) {
    if (directory.empty()) return false;
    return path == directory || path.starts_with(directory == "/" ? directory : directory + "/");
}

}  // namespace

bool is_overlapping(const Footprint& open, const Footprint& closed, const SharedGround& ground) {
    if (ground.has_writable) return true;
    // Either workspace may hold the other.
    if (holds(open.lineage, closed.workspace) || holds(closed.lineage, open.workspace)) return true;
    if (open.workspace.dev == closed.workspace.dev &&
        (is_beneath(open.inside, closed.inside) || is_beneath(closed.inside, open.inside))) {
        return true;
    }
    // A workspace below something that every run can read.
    return std::any_of(closed.lineage.begin(), closed.lineage.end(),
                       [&](const os::FileId& id) { return holds(ground.readable, id); });
}

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

    for (const auto& [id, other] : runs_) {
        if (other->network == run->network) continue;
        ActiveRun& open = is_closed ? *other : *run;
        ActiveRun& closed = is_closed ? *run : *other;
        if (!is_overlapping(open.footprint, closed.footprint, ground_)) continue;
        closed.egress = Egress::chosen;
        if (!is_closed && closed.lower) {
            closed.lower("run " + run->id + " has the network open and can read this workspace");
        }
    }
    return Ticket(*this, std::move(run));
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
