// SPDX-License-Identifier: MIT
// The daemon's own log: lines on stderr, or entries of the journal where stderr leads there. Never
// argv, environment, label or output of a command, nor what an error of a request quotes of them.
// No line waits for a reader: one that nobody takes is lost, and the next that somebody takes is
// preceded by how many were.
#pragma once

#include <string>
#include <string_view>

#include "proto/messages.hpp"
#include "proto/result.hpp"

namespace mechad {

// From here on every line is an entry with fields of its own, see LogFields. One that the journal
// does not take goes to stderr as before.
void log_to_journal();

// The message, and the remedy in brackets when there is one.
std::string text_of(const Error& error);

// One line each; control bytes and bytes that are not ASCII are shown as \xNN.
void log_info(std::string_view line);
void log_warning(std::string_view line);
void log_error(std::string_view line);

// What is told apart in the journal, as MECHAD_EVENT.
enum class LogEvent {
    daemon_started,
    daemon_idle,
    daemon_stopping,
    daemon_stopped,
    start_failed,
    preflight_passed,
    preflight_failed,
    run_started,
    run_ended,
    run_refused
};

// Each is a field of the journal entry when it is not empty.
struct LogFields {
    std::string run_id = {};     // MECHAD_RUN_ID
    std::string backend = {};    // MECHAD_BACKEND
    std::string workspace = {};  // MECHAD_WORKSPACE, byte for byte
    std::string exit = {};       // MECHAD_EXIT: a code, or a signal's name
    std::string reason = {};     // MECHAD_REASON: of an end, or the kind of a refusal
};

void log_event(LogEvent event, std::string_view line, const LogFields& fields = {});

void log_run_started(const LogFields& run);
void log_run_ended(LogFields run, const ExitReport& report);
// Says nothing while preflight has failed: its own warning stands for all of them.
void log_run_refused(LogFields run, const Error& error);

}  // namespace mechad
