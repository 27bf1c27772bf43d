// SPDX-License-Identifier: MIT
// The runs that are alive: their number against the limit, what list and kill see of them, and
// whether one of them lowers what another was told. Of those that ended, the last few by name.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/footprint.hpp"
#include "proto/messages.hpp"

namespace mechad {

// One active run. The functions reach the run itself and are empty before it has started.
struct ActiveRun {
    std::string id;
    std::string label;
    std::string workspace;
    Footprint footprint;
    bool network = false;
    Egress egress = Egress::chosen;
    std::string lowered_because;  // a clause; empty: nothing outside lowered the egress
    pid_t pid = 0;                // of the command; 0 before exec
    std::chrono::steady_clock::time_point started{};

    struct Output {
        std::uint64_t stdout_bytes = 0;
        std::uint64_t stderr_bytes = 0;
    };
    // Set once its result is made; without it, it never ran and is forgotten.
    std::optional<ExitReport> report = {};

    std::function<Output()> count_output;
    std::function<void(EndReason)> stop;     // TERM, grace, KILL
    std::function<void()> stop_now;          // at once, for a daemon in a hurry
    std::function<void(int)> signal;         // to the command's process group
    std::function<void()> lower;             // its egress was lowered
    std::function<void(Footprint&)> locate;  // makes it as of now; empty: it never moves
};

// A closed run whose bytes another may carry out.
struct Leak {
    ActiveRun* run = nullptr;
    std::string because;  // a clause
};

class RunTable {
public:
    // `ground` may change between two calls, and outlives the table.
    RunTable(std::size_t runs_max, const SharedGround& ground)
        : runs_max_(runs_max), ground_(&ground) {}

    // Keeps the run in the table for as long as it is held.
    class Ticket {
    public:
        Ticket(RunTable& table, std::unique_ptr<ActiveRun> run);
        ~Ticket();
        Ticket(Ticket&& other) noexcept = default;
        Ticket& operator=(Ticket&&) = delete;
        ActiveRun& operator*() const { return *run_; }
        ActiveRun* operator->() const { return run_.get(); }

    private:
        RunTable* table_;
        std::unique_ptr<ActiveRun> run_;
    };

    // Why a closed run of that footprint would be told now that its bytes may leave, as a clause.
    std::optional<std::string> find_lowering(const Footprint& closed) const;

    // `is_closed`: the run will be told that nothing of it leaves the machine, unless
    // find_lowering() has a reason. An open run lowers the closed ones that it overlaps, those
    // lower the closed ones that they overlap, and so on: each can pass on what it reads. Only
    // among the living: what a run leaves behind is for the next one to take. `locate` is called
    // for as long as the ticket is held. Errors: overloaded, shutting_down.
    Result<Ticket> enter(std::string label, std::string workspace, Footprint footprint,
                         bool is_closed, std::function<void(Footprint&)> locate = {});

    // What was told of closed runs is in doubt: their egress is chosen from now on.
    void lower_all(const std::string& because);

    ActiveRun* find(const std::string& id) const;
    std::size_t active_count() const { return runs_.size(); }
    std::size_t runs_max() const { return runs_max_; }
    std::vector<RunSummary> list() const;
    // The last recent_max that ended, the last one first.
    std::vector<EndedRun> list_recent() const;
    static constexpr std::size_t recent_max = 64;

    // Called whenever the number of active runs is another one.
    void set_on_count(std::function<void()> on_count) { on_count_ = std::move(on_count); }

    // No more runs from now on; ends those that are alive.
    void shut_down();
    void shut_down_now();

private:
    struct Remembered {
        EndedRun run;
        std::chrono::steady_clock::time_point ended;
    };

    void forget(const ActiveRun& run);
    void count_changed() const {
        if (on_count_) on_count_();
    }
    std::vector<Leak> find_leaks(ActiveRun& newcomer) const;

    std::size_t runs_max_;
    const SharedGround* ground_;
    std::map<std::string, ActiveRun*> runs_;
    std::deque<Remembered> recent_;  // the last one first
    std::function<void()> on_count_;
    bool is_shutting_down_ = false;
};

}  // namespace mechad
