// SPDX-License-Identifier: MIT
// One run, from an admitted request to its report: launch, prove, start, relay, end.
#pragma once

#include <linux/filter.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <vector>

#include "daemon/auto_exec_files.hpp"
#include "daemon/backend/backend.hpp"
#include "daemon/claims.hpp"
#include "daemon/launch/launcher.hpp"
#include "daemon/lifecycle.hpp"
#include "daemon/os/bound_sockets.hpp"
#include "daemon/os/syscalls.hpp"
#include "daemon/policy.hpp"
#include "daemon/run_client.hpp"
#include "daemon/run_table.hpp"
#include "daemon/stream/output_pump.hpp"
#include "daemon/stream/stdin_feed.hpp"
#include "daemon/stream/task_group.hpp"
#include "daemon/stream/wakeup.hpp"

namespace mechad {

// What every run of this process shares; made once at start.
struct RunServices {
    boost::asio::any_io_executor executor;
    const Backend* backend = nullptr;
    const os::HostFacts* host = nullptr;
    const Policy* policy = nullptr;  // that admitted the run
    Launcher* launcher = nullptr;
    Reaper* reaper = nullptr;
    os::BoundSockets* bound_sockets = nullptr;
    std::vector<sock_filter> filter;
    os::FileLimits command_file_limits;  // the daemon raised its own
    init_wire::Ready own_namespaces{};   // the daemon's
    std::chrono::milliseconds kill_grace{2000};
};

// What a box showed of the namespaces that it should have of its own.
enum class BoxProof {
    none,  // it was not made, or was stopped before
    shown,
    missing
};

class Run {
public:
    // Of the error of a box that did not show the namespaces of its own that it should have.
    static constexpr const char* proof_step = "namespaces";

    // All four outlive the run.
    Run(const RunServices& services, const Admission& admission, RunClient& client,
        ActiveRun& entry);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    // An error means that the command never ran, a report that it did.
    boost::asio::awaitable<Result<ExitReport>> execute(const Proofs& proofs);
    BoxProof box_proof() const { return box_proof_; }

private:
    // The steps, in order.
    Result<void> launch();
    boost::asio::awaitable<Result<void>> prove_box();
    boost::asio::awaitable<void> clear_after_launcher();
    Result<CommandStdio> open_stdio();
    boost::asio::awaitable<Result<void>> start_command();
    boost::asio::awaitable<void> tell_started(const Proofs& proofs);
    boost::asio::awaitable<void> relay_until_end();
    boost::asio::awaitable<void> end_streams();
    ExitReport make_report() const;
    void advise(ExitReport& report) const;

    boost::asio::awaitable<void> carry(OutputPump& pump);
    boost::asio::awaitable<void> clear_after_init();
    boost::asio::awaitable<void> take_input();
    boost::asio::awaitable<void> watch_client();
    boost::asio::awaitable<void> tell_lowered();
    void note_late_lowering();
    void look_for_sockets();
    void note_news();
    void act(Lifecycle::Action action);
    void reach_from_table();
    Error ended_before_start() const;
    Error setup_failure(const std::string& what) const;

    const RunServices& services_;
    const Admission& admission_;
    RunClient& client_;
    ActiveRun& entry_;

    Lifecycle life_;
    Wakeup wakeup_;
    Wakeup cleared_;
    TaskGroup tasks_;
    TaskGroup pumps_;
    BoxPlan plan_;
    std::unique_ptr<LiveBox> box_;
    std::unique_ptr<OutputPump> stdout_;
    std::unique_ptr<OutputPump> stderr_;
    std::unique_ptr<StdinFeed> stdin_;
    std::vector<int> early_signals_;  // asked for before the command started
    Capabilities worst_;              // over the run's life
    std::vector<std::string> end_notes_;
    BoxProof box_proof_ = BoxProof::none;
    AutoExecFiles files_before_;  // as of before the command
    bool has_news_of_egress_ = false;
    bool is_clearing_ = false;
    bool is_over_ = false;
};

}  // namespace mechad
