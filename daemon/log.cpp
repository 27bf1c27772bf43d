// SPDX-License-Identifier: MIT
#include "daemon/log.hpp"

#include <spdlog/details/null_mutex.h>
#include <spdlog/details/os.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <syslog.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "daemon/os/journal.hpp"
#include "daemon/os/line_output.hpp"
#include "proto/signals.hpp"
#include "proto/wire_names.hpp"

namespace mechad {

namespace {

enum class Severity { info, warning, error };

bool is_to_journal = false;

std::uint64_t lost_count = 0;  // lines that nobody took, since the last that told of them
std::mutex one_line;

// spdlog's own sinks wait for whoever reads stderr.
class StderrSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
public:
    StderrSink() {
        set_pattern_("mechad: %^%l%$: %v");
        is_coloured_ =
            spdlog::details::os::in_terminal(stderr) && spdlog::details::os::is_color_terminal();
    }
    bool is_taken() const { return is_taken_; }  // the last line

private:
    static std::string_view colour_of(spdlog::level::level_enum level) {
        if (level >= spdlog::level::err) return "\033[31m\033[1m";
        return level == spdlog::level::warn ? "\033[33m\033[1m" : "\033[32m";
    }
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t formatted;
        formatter_->format(message, formatted);
        std::string line = fmt::to_string(formatted);
        if (is_coloured_) {
            line.insert(message.color_range_end, "\033[m");
            line.insert(message.color_range_start, colour_of(message.level));
        }
        is_taken_ = output_.write(std::move(line));
    }
    void flush_() override {}

    os::LineOutput output_{STDERR_FILENO};
    bool is_coloured_ = false;
    bool is_taken_ = true;
};

bool write_line(spdlog::level::level_enum level, const std::string& line) {
    static const auto sink = std::make_shared<StderrSink>();
    static spdlog::logger logger("mechad", sink);
    logger.log(level, "{}", line);
    return sink->is_taken();
}

std::string escaped(std::string_view line) {
    std::string text;
    for (const char byte : line) {
        const auto value = static_cast<unsigned char>(byte);
        if (value >= 0x20 && value < 0x7f) {
            text.push_back(byte);
        } else {
            text += fmt::format("\\x{:02x}", value);
        }
    }
    return text;
}

std::string_view name_of(LogEvent event) {
    switch (event) {
        case LogEvent::daemon_started: return "daemon_started";
        case LogEvent::daemon_idle: return "daemon_idle";
        case LogEvent::daemon_stopping: return "daemon_stopping";
        case LogEvent::daemon_stopped: return "daemon_stopped";
        case LogEvent::start_failed: return "start_failed";
        case LogEvent::preflight_passed: return "preflight_passed";
        case LogEvent::preflight_failed: return "preflight_failed";
        case LogEvent::run_started: return "run_started";
        case LogEvent::run_ended: return "run_ended";
        case LogEvent::run_refused: return "run_refused";
    }
    return "";
}

Severity severity_of(LogEvent event) {
    if (event == LogEvent::start_failed) return Severity::error;
    return event == LogEvent::preflight_failed ? Severity::warning : Severity::info;
}

int priority_of(Severity severity) {
    if (severity == Severity::error) return LOG_ERR;
    return severity == Severity::warning ? LOG_WARNING : LOG_INFO;
}

spdlog::level::level_enum level_of(Severity severity) {
    if (severity == Severity::error) return spdlog::level::err;
    return severity == Severity::warning ? spdlog::level::warn : spdlog::level::info;
}

bool write_entry(Severity severity, const std::string& line, std::string_view event,
                 const LogFields& fields) {
    std::vector<std::string> entry = {"MESSAGE=" + line,
                                      "PRIORITY=" + std::to_string(priority_of(severity)),
                                      "SYSLOG_IDENTIFIER=mechad"};
    const std::pair<std::string_view, std::string_view> optional[] = {
        {"MECHAD_EVENT=", event},
        {"MECHAD_RUN_ID=", fields.run_id},
        {"MECHAD_BACKEND=", fields.backend},
        {"MECHAD_WORKSPACE=", fields.workspace},
        {"MECHAD_EXIT=", fields.exit},
        {"MECHAD_REASON=", fields.reason}};
    entry.reserve(entry.size() + std::size(optional));
    for (const auto& [name, value] : optional) {
        if (!value.empty()) entry.push_back(std::string(name).append(value));
    }
    return os::send_to_journal(entry);
}

bool deliver(Severity severity, const std::string& text, std::string_view event = {},
             const LogFields& fields = {}) {
    return (is_to_journal && write_entry(severity, text, event, fields)) ||
           write_line(level_of(severity), text);
}

void write(Severity severity, std::string_view line, std::string_view event = {},
           const LogFields& fields = {}) {
    const std::lock_guard<std::mutex> lock(one_line);
    if (lost_count > 0 &&
        deliver(Severity::warning,
                fmt::format("{} lines of the log were lost here: nobody read them", lost_count))) {
        lost_count = 0;
    }
    if (!deliver(severity, escaped(line), event, fields)) ++lost_count;
}

}  // namespace

std::string text_of(const Error& error) {
    return error.message() + (error.hint().empty() ? "" : " (" + error.hint() + ")");
}

void log_to_journal() { is_to_journal = true; }

void log_info(std::string_view line) { write(Severity::info, line); }
void log_warning(std::string_view line) { write(Severity::warning, line); }
void log_error(std::string_view line) { write(Severity::error, line); }

void log_event(LogEvent event, std::string_view line, const LogFields& fields) {
    write(severity_of(event), line, name_of(event), fields);
}

void log_run_started(const LogFields& run) {
    log_event(LogEvent::run_started,
              "run " + run.run_id + " started: " + run.backend + ", workspace " + run.workspace,
              run);
}

void log_run_ended(LogFields run, const ExitReport& report) {
    run.exit = report.exit_signal == 0 ? std::to_string(report.exit_code)
                                       : signal_name(report.exit_signal);
    run.reason = wire_name(end_reason_names, report.reason);
    log_event(LogEvent::run_ended, "run " + run.run_id + " ended: " + run.exit + ", " + run.reason,
              run);
}

void log_run_refused(LogFields run, const Error& error) {
    if (error.kind() == ErrorKind::preflight_failed) return;
    run.reason = to_string(error.kind());
    std::string line = run.run_id.empty() ? "run" : "run " + run.run_id;
    line += " refused: " + run.reason;
    if (!error.field().empty()) line += ", " + error.field();
    if (!error.step().empty()) line += ", step " + error.step();
    log_event(LogEvent::run_refused, line, run);
}

}  // namespace mechad
