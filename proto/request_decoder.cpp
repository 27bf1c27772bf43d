// SPDX-License-Identifier: MIT
#include "proto/codec.hpp"
#include "proto/member_decoder.hpp"
#include "proto/spawn_decoder.hpp"
#include "proto/utf8.hpp"

namespace mechad {

namespace {

// The four members of JSON-RPC, checked; `params` may be absent.
struct Envelope {
    std::optional<RequestId> id;
    std::string method;
    const JsonValue* params = nullptr;
};

// The id that an answer can carry; nothing when there are two, or one that the client might not
// recognise when it comes back.
std::optional<RequestId> find_id(const JsonObject& message) {
    std::optional<RequestId> id;
    for (const JsonMember& member : message) {
        if (member.name != "id") continue;
        if (id) return std::nullopt;
        if (const auto* const number = member.value.get<std::int64_t>()) {
            id = *number;
        } else if (const auto* const text = member.value.get<std::string>()) {
            if (text->size() > request_id_bytes_max || !is_text(*text)) return std::nullopt;
            id = *text;
        }
    }
    return id;
}

Result<Envelope> decode_envelope(const JsonObject& message) {
    Envelope envelope;
    envelope.id = find_id(message);
    for (const JsonMember& member : message) {
        if (member.name == "jsonrpc") {
            const auto* const version = member.value.get<std::string>();
            if (version == nullptr || *version != "2.0") {
                return invalid_member("jsonrpc", R"(must be "2.0")");
            }
        } else if (member.name == "id") {
            if (!envelope.id) {
                return invalid_member("id", "must be an integer or a string of at most " +
                                                std::to_string(request_id_bytes_max) + " bytes");
            }
        } else if (member.name == "method") {
            Result<std::string> method = decode_string(member.value, "method");
            if (!method) return method.error();
            envelope.method = *std::move(method);
        } else if (member.name == "params") {
            envelope.params = &member.value;
        } else {
            return unknown_member(shown_name(member.name), "jsonrpc, id, method, params");
        }
    }
    for (const std::string_view required : {"jsonrpc", "method"}) {
        if (std::ranges::count(message, required, &JsonMember::name) == 0)
            return invalid_member(required, "is required");
    }
    return envelope;
}

// --- control calls ----------------------------------------------------------------------------

struct NoMembers {};
constexpr std::array<MemberRule<NoMembers>, 0> no_rules{};

Result<void> check_no_params(const JsonValue& params) {
    NoMembers none;
    return decode_members(params, "params", no_rules, none);
}

constexpr std::array list_rules = std::to_array<MemberRule<ListParams>>({
    {"recent",
     [](const JsonValue& value, const std::string& path, ListParams& into) -> Result<void> {
         const Result<bool> recent = decode_bool(value, path);
         if (!recent) return recent.error();
         into.recent = *recent;
         return {};
     }},
});

constexpr std::array kill_rules = std::to_array<MemberRule<KillParams>>({
    {"run",
     [](const JsonValue& value, const std::string& path, KillParams& into) -> Result<void> {
         Result<std::string> run = decode_string(value, path);
         if (!run) return run.error();
         if (run->empty() || run->size() > run_bytes_max) {
             return invalid_member(path, "must be the name of a run");
         }
         into.run = *std::move(run);
         return {};
     }},
    {"signal",
     [](const JsonValue& value, const std::string& path, KillParams& into) -> Result<void> {
         const Result<int> signal = decode_signal(value, path);
         if (!signal) return signal.error();
         into.signal = *signal;
         return {};
     }},
});

Result<KillParams> decode_kill_params(const JsonValue& params) {
    KillParams kill;
    if (const auto stored = decode_members(params, "params", kill_rules, kill); !stored) {
        return stored.error();
    }
    if (kill.run.empty()) return invalid_member("run", "is required");
    return kill;
}

// --- notifications ----------------------------------------------------------------------------

constexpr std::array stdin_rules = std::to_array<MemberRule<StdinMessage>>({
    {"text",
     [](const JsonValue& value, const std::string& path, StdinMessage& into) -> Result<void> {
         Result<std::string> text = decode_string(value, path);
         if (!text) return text.error();
         into.bytes = *std::move(text);
         return {};
     }},
    {"base64",
     [](const JsonValue& value, const std::string& path, StdinMessage& into) -> Result<void> {
         Result<std::string> bytes = decode_base64_member(value, path);
         if (!bytes) return bytes.error();
         into.bytes = *std::move(bytes);
         return {};
     }},
    {"eof",
     [](const JsonValue& value, const std::string& path, StdinMessage& into) -> Result<void> {
         const bool* const eof = value.get<bool>();
         if (eof == nullptr || !*eof) return invalid_member(path, "must be true");
         into.eof = true;
         return {};
     }},
});

Result<StdinMessage> decode_stdin_params(const JsonValue& params) {
    StdinMessage message;
    const Result<void> stored = decode_members(params, "params", stdin_rules, message);
    if (!stored) return stored.error();
    if (params.get<JsonObject>()->size() != 1) {
        return invalid_member("params", "must hold exactly one of text, base64 and eof");
    }
    return message;
}

constexpr std::array signal_rules = std::to_array<MemberRule<SignalMessage>>({
    {"signal",
     [](const JsonValue& value, const std::string& path, SignalMessage& into) -> Result<void> {
         const Result<int> signal = decode_signal(value, path);
         if (!signal) return signal.error();
         into.signal = *signal;
         return {};
     }},
});

Result<SignalMessage> decode_signal_params(const JsonValue& params) {
    SignalMessage message;
    const Result<void> stored = decode_members(params, "params", signal_rules, message);
    if (!stored) return stored.error();
    if (message.signal == 0) return invalid_member("signal", "is required");
    return message;
}

// --- methods ----------------------------------------------------------------------------------

Result<ClientMessage> make_call(const Envelope& envelope, const JsonValue& params) {
    Call call{*envelope.id, StatusParams{}};
    if (envelope.method == "spawn") {
        Result<SpawnParams> spawn = decode_spawn_params(params);
        if (!spawn) return spawn.error();
        call.params = *std::move(spawn);
    } else if (envelope.method == "describe") {
        Result<DescribeParams> describe = decode_describe_params(params);
        if (!describe) return describe.error();
        call.params = *std::move(describe);
    } else if (envelope.method == "kill") {
        Result<KillParams> kill = decode_kill_params(params);
        if (!kill) return kill.error();
        call.params = *std::move(kill);
    } else if (envelope.method == "list") {
        ListParams list;
        const Result<void> stored = decode_members(params, "params", list_rules, list);
        if (!stored) return stored.error();
        call.params = list;
    } else {
        if (const Result<void> none = check_no_params(params); !none) return none.error();
        if (envelope.method == "recheck") call.params = RecheckParams{};
    }
    return ClientMessage(std::move(call));
}

Result<ClientMessage> make_notification(const Envelope& envelope, const JsonValue& params) {
    if (envelope.method == "signal") {
        const Result<SignalMessage> signal = decode_signal_params(params);
        if (!signal) return signal.error();
        return ClientMessage(*signal);
    }
    Result<StdinMessage> message = decode_stdin_params(params);
    if (!message) return message.error();
    return ClientMessage(*std::move(message));
}

enum class MethodKind { call, notification };

std::optional<MethodKind> find_method(std::string_view method) {
    for (const std::string_view name : {"spawn", "describe", "status", "recheck", "list", "kill"}) {
        if (method == name) return MethodKind::call;
    }
    for (const std::string_view name : {"stdin", "signal"}) {
        if (method == name) return MethodKind::notification;
    }
    return std::nullopt;
}

Result<ClientMessage> decode_message(const JsonObject& message) {
    const Result<Envelope> envelope = decode_envelope(message);
    if (!envelope) return envelope.error();
    const std::optional<MethodKind> kind = find_method(envelope->method);
    if (!kind) {
        return Error{ErrorKind::unknown_method, "unknown method " + shown_name(envelope->method),
                     "method", "`status` lists the features of this daemon"};
    }
    const JsonValue no_params{JsonObject{}};
    const JsonValue& params = envelope->params == nullptr ? no_params : *envelope->params;
    if (*kind == MethodKind::notification) {
        if (envelope->id) {
            return invalid_member("id", "does not go with a notification: " + envelope->method +
                                            " is never answered");
        }
        return make_notification(*envelope, params);
    }
    if (!envelope->id) return invalid_member("id", "is required: a call is answered by it");
    return make_call(*envelope, params);
}

}  // namespace

boost::system::result<ClientMessage, DecodeFailure> decode_client_message(std::string_view line) {
    if (line.size() > request_line_bytes_max) {
        return DecodeFailure(
            {}, {ErrorKind::parse_error,
                 "the line is longer than " + std::to_string(request_line_bytes_max) + " bytes"});
    }
    const Result<JsonValue> message = parse_json(line);
    if (!message) return DecodeFailure({}, message.error());
    const auto* const object = message->get<JsonObject>();
    if (object == nullptr) {
        return DecodeFailure({}, {ErrorKind::parse_error,
                                  "the line is not one JSON object",
                                  {},
                                  "one call per line; batches are not taken"});
    }
    if (const auto twin = find_duplicate_key(*message)) {
        return DecodeFailure(find_id(*object), *twin);
    }
    if (const auto nul = find_nul(*message)) return DecodeFailure(find_id(*object), *nul);
    Result<ClientMessage> decoded = decode_message(*object);
    if (!decoded) return DecodeFailure(find_id(*object), decoded.error());
    return *std::move(decoded);
}

}  // namespace mechad
