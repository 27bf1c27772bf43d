// SPDX-License-Identifier: MIT
// Protocol v1 between lines and messages.hpp, both directions of both sides. Strict about what a
// client sends, tolerant about what a daemon says; PROTOCOL.md is the contract. Decoders take a
// line without its LF; encoders return or append whole lines, LF included.
#pragma once

#include <boost/system/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "proto/json_value.hpp"
#include "proto/messages.hpp"
#include "proto/result.hpp"

namespace mechad {

// --- the daemon's side ------------------------------------------------------------------------

// Why a line was refused, and the id to answer with: present whenever the line held one that can
// be trusted, however bad the rest was.
class DecodeFailure {
public:
    DecodeFailure() = default;
    DecodeFailure(std::optional<RequestId> id, Error error)
        : id_(std::move(id)), error_(std::move(error)) {}

    const std::optional<RequestId>& id() const { return id_; }
    const Error& error() const { return error_; }

private:
    std::optional<RequestId> id_;
    Error error_;
};

[[noreturn]] inline void throw_exception_from_error(const DecodeFailure& failure,
                                                    const boost::source_location& where) {
    throw_exception_from_error(failure.error(), where);
}

[[nodiscard]] boost::system::result<ClientMessage, DecodeFailure> decode_client_message(
    std::string_view line);

// Whether a command of this connection is alive when an error is sent. Only then may an error
// not say that nothing was executed: a bad notification refuses itself and ends a live run.
enum class CommandState { never_ran, running };

std::string encode_started(const Started& started);
std::string encode_changed(const Changed& changed);
std::string encode_result(const RequestId& id, const ExitReport& report);
std::string encode_result(const RequestId& id, const DescribeReport& report);
std::string encode_result(const RequestId& id, const StatusReport& report);
// Of a recheck.
std::string encode_result(const RequestId& id, const PreflightReport& report);
std::string encode_result(const RequestId& id, const ListReport& report);
std::string encode_result(const RequestId& id, const KillReport& report);
// At most daemon_line_bytes_max long: texts that would not fit are cut.
std::string encode_error(const std::optional<RequestId>& id, const Error& error,
                         CommandState state = CommandState::never_ran);
// For `output` lines see output_encoder.hpp.

// --- the client's side ------------------------------------------------------------------------

std::string encode_call(const Call& call);
// As many lines as the bytes need, none for no bytes.
void append_stdin(std::string_view bytes, std::string& out);
std::string encode_stdin_eof();
std::string encode_signal(int signal);

// The answer to a call that did something; which decode_*_report reads it depends on the call.
struct Reply {
    RequestId id;
    JsonValue result;
};

// The answer to a call that did nothing, as the daemon worded it. `kind` may be one that this
// client does not know.
struct ErrorReply {
    std::optional<RequestId> id;
    std::int64_t code = 0;
    std::string kind;
    std::string message;
    std::string field;
    std::string hint;
    std::string step;
    int os_errno = 0;
    // True: a command was running and this ends it. Nothing: the daemon did not say.
    std::optional<bool> executed = {};
};

// A notification of a later version, to be ignored.
struct UnknownMessage {
    std::string method;
};

using DaemonMessage = std::variant<Output, Started, Changed, Reply, ErrorReply, UnknownMessage>;

// Errors have kind parse_error or invalid_request and mean that the peer does not speak protocol
// v1; nothing later on the connection can be relied on.
Result<DaemonMessage> decode_daemon_message(std::string_view line);

// Absent or unknown values read as the least that could be true: egress "chosen", access
// "read_write", preflight "failed", reason "unrecognized". An exit that cannot be read is an error,
// never exit code 0.
Result<ExitReport> decode_exit_report(const JsonValue& result);
Result<DescribeReport> decode_describe_report(const JsonValue& result);
Result<StatusReport> decode_status_report(const JsonValue& result);
Result<PreflightReport> decode_preflight_report(const JsonValue& result);
Result<ListReport> decode_list_report(const JsonValue& result);
Result<KillReport> decode_kill_report(const JsonValue& result);

}  // namespace mechad
