// SPDX-License-Identifier: MIT
#include <iostream>

#include "client/ctl/ask.hpp"
#include "client/ctl/commands.hpp"
#include "client/ctl/paper.hpp"
#include "client/ctl/runs_table.hpp"
#include "client/ctl/words.hpp"
#include "proto/signals.hpp"
#include "proto/wire_names.hpp"

namespace mechad::ctl {

namespace {

void print_list(const ListReport& list) {
    if (list.runs.empty()) {
        std::cout << "no run is active\n";
    } else {
        print_runs(list.runs);
    }
    if (!list.recent) return;
    std::cout << "\n";
    if (list.recent->empty()) {
        std::cout << "no run has ended\n";
    } else {
        print_ended(*list.recent);
    }
}

}  // namespace

void print_runs(const std::vector<RunSummary>& runs) {
    Table table(
        {"RUN", "PID", "AGE", "NETWORK", "EGRESS", "STDOUT", "STDERR", "LABEL", "WORKSPACE"});
    for (const RunSummary& run : runs) {
        table.add({run.run, std::to_string(run.pid), format_span(run.age),
                   word_for_network(run.network), word_for(run.egress),
                   std::to_string(run.stdout_bytes), std::to_string(run.stderr_bytes), run.label,
                   run.workspace});
    }
    table.print();
}

void print_ended(const std::vector<EndedRun>& runs) {
    Table table({"RUN", "ENDED", "EXIT", "REASON", "NETWORK", "EGRESS", "LABEL", "WORKSPACE"});
    for (const EndedRun& run : runs) {
        const std::string exit =
            run.exit_signal == 0 ? std::to_string(run.exit_code) : signal_name(run.exit_signal);
        table.add({run.run, format_span(run.ended_ago) + " ago", exit,
                   std::string(wire_name(end_reason_names, run.reason)),
                   word_for_network(run.network), word_for(run.egress), run.label, run.workspace});
    }
    table.print();
}

int ps(const std::string& socket_path, const ListParams& params, bool as_json) {
    const auto answer = ask(socket_path, params, decode_list_report);
    if (!answer) return fail(answer.error());
    if (as_json) {
        std::cout << to_json(answer->json) << "\n";
    } else {
        print_list(answer->report);
    }
    return 0;
}

}  // namespace mechad::ctl
