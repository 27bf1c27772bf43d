// SPDX-License-Identifier: MIT
#include "proto/base64.hpp"
#include "proto/codec.hpp"
#include "proto/json_text.hpp"
#include "proto/output_line.hpp"
#include "proto/report_decoder.hpp"
#include "proto/wire_names.hpp"

namespace mechad {

namespace {

Error not_understood(std::string what) {
    return {ErrorKind::invalid_request, "the daemon's message " + std::move(what)};
}

// --- output, the fast way ---------------------------------------------------------------------

bool skip(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

// Recognises the daemon's own spelling of an `output` line; nothing means "ask the full parser".
std::optional<Output> decode_plain_output(std::string_view line) {
    Output output;
    if (skip(line, output_line::stderr_begin)) {
        output.stream = OutputStream::err;
    } else if (!skip(line, output_line::stdout_begin)) {
        return std::nullopt;
    }
    constexpr std::string_view closing = R"("}})";
    if (!line.ends_with(closing)) return std::nullopt;
    line.remove_suffix(closing.size());
    if (skip(line, output_line::text_begin)) {
        // A quote inside, which would begin another member, is not a simple escape.
        if (!unescape_simple(line, output.bytes)) return std::nullopt;
        return output;
    }
    if (!skip(line, output_line::base64_begin)) return std::nullopt;
    std::optional<std::string> bytes = decode_base64(line);
    if (!bytes) return std::nullopt;
    output.bytes = *std::move(bytes);
    return output;
}

// --- everything, through the parser -----------------------------------------------------------

Result<Output> decode_output(const JsonValue& params) {
    const auto stream = from_wire_name(output_stream_names, text_or_empty(params, "stream"));
    if (!stream) return not_understood("is output of no known stream");
    const JsonValue* const text = params.find("text");
    const JsonValue* const base64 = params.find("base64");
    if ((text == nullptr) == (base64 == nullptr)) {
        return not_understood("is output with neither or both of text and base64");
    }
    const auto* const payload = (text != nullptr ? text : base64)->get<std::string>();
    if (payload == nullptr) return not_understood("is output that is not a string");
    if (text != nullptr) return Output{*stream, *payload};
    std::optional<std::string> bytes = decode_base64(*payload);
    if (!bytes) return not_understood("is output that is not base64");
    return Output{*stream, *std::move(bytes)};
}

Result<Started> decode_started(const JsonValue& params) {
    Started started;
    started.run = text_or_empty(params, "run");
    if (started.run.empty()) return not_understood("is a start that names no run");
    started.pid = integer_or_zero(params, "pid");
    started.box = decode_box(params);
    return started;
}

Result<DaemonMessage> decode_notification(const std::string& method, const JsonValue& params) {
    if (method == "output") {
        Result<Output> output = decode_output(params);
        if (!output) return output.error();
        return DaemonMessage(*std::move(output));
    }
    if (method == "started") {
        Result<Started> started = decode_started(params);
        if (!started) return started.error();
        return DaemonMessage(*std::move(started));
    }
    if (method == "changed") {
        return DaemonMessage(
            Changed{decode_capabilities(params), text_or_empty(params, "because")});
    }
    return DaemonMessage(UnknownMessage{method});
}

Result<std::optional<RequestId>> decode_reply_id(const JsonValue& message) {
    std::optional<RequestId> id;
    const JsonValue* const given = message.find("id");
    if (given == nullptr) return not_understood("is a reply without an id");
    if (const auto* const number = given->get<std::int64_t>()) {
        id = *number;
    } else if (const auto* const text = given->get<std::string>()) {
        id = *text;
    } else if (given->get<std::nullptr_t>() == nullptr) {
        return not_understood("is a reply whose id is neither an integer nor a string");
    }
    return id;
}

ErrorReply decode_error_reply(std::optional<RequestId> id, const JsonValue& error) {
    ErrorReply reply;
    reply.id = std::move(id);
    reply.code = *error.find("code")->get<std::int64_t>();
    reply.message = *error.find("message")->get<std::string>();
    const JsonValue* const details = error.find("data");
    if (details == nullptr) return reply;
    reply.kind = text_or_empty(*details, "kind");
    reply.field = text_or_empty(*details, "field");
    reply.hint = text_or_empty(*details, "hint");
    reply.step = text_or_empty(*details, "step");
    reply.os_errno = static_cast<int>(integer_or_zero(*details, "errno"));
    const JsonValue* const executed = details->find("executed");
    const bool* const said = executed == nullptr ? nullptr : executed->get<bool>();
    if (said != nullptr) reply.executed = *said;
    return reply;
}

// What JSON-RPC 2.0 asks of every error. Less is no word on what became of a request.
bool is_error(const JsonValue& error) {
    const JsonValue* const code = error.find("code");
    const JsonValue* const message = error.find("message");
    return code != nullptr && code->get<std::int64_t>() != nullptr && message != nullptr &&
           message->get<std::string>() != nullptr;
}

Result<DaemonMessage> decode_reply(const JsonValue& message) {
    Result<std::optional<RequestId>> id = decode_reply_id(message);
    if (!id) return id.error();
    if (const JsonValue* const error = message.find("error")) {
        if (!is_error(*error)) return not_understood("has an error without a code or a message");
        return DaemonMessage(decode_error_reply(*std::move(id), *error));
    }
    const JsonValue* const result = message.find("result");
    if (result == nullptr) return not_understood("has no method, result or error");
    if (!id->has_value()) return not_understood("is a result without an id");
    return DaemonMessage(Reply{**id, *result});
}

}  // namespace

Result<DaemonMessage> decode_daemon_message(std::string_view line) {
    if (auto output = decode_plain_output(line)) return DaemonMessage(*std::move(output));
    const Result<JsonValue> message = parse_json(line);
    if (!message) return message.error();
    if (message->get<JsonObject>() == nullptr) return not_understood("is not an object");
    // Two readers of a duplicate key may believe different things, so that nobody reads it.
    if (const auto twin = find_duplicate_key(*message)) return *twin;
    if (text_or_empty(*message, "jsonrpc") != "2.0") return not_understood("is not JSON-RPC 2.0");
    const JsonValue* const method = message->find("method");
    if (method == nullptr) return decode_reply(*message);
    const auto* const name = method->get<std::string>();
    if (name == nullptr) return not_understood("has a method that is not a string");
    const JsonValue* const params = message->find("params");
    return decode_notification(*name, params == nullptr ? JsonValue() : *params);
}

}  // namespace mechad
