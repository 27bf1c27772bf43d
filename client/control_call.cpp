// SPDX-License-Identifier: MIT
#include "client/control_call.hpp"

#include "client/failure.hpp"
#include "client/socket.hpp"

namespace mechad::client {

namespace {

constexpr std::int64_t call_id = 1;

// Only a kill does something, and may have done it when its answer is lost.
Executed fate_of(bool is_kill) { return is_kill ? Executed::unknown : Executed::no; }

std::string run_of(const ControlCall::Params& params) {
    const auto* const kill = std::get_if<KillParams>(&params);
    return kill == nullptr ? std::string() : kill->run;
}

Error unanswered(bool is_kill) {
    return {ErrorKind::connection_lost, fate_of(is_kill),
            is_kill ? "mechad closed the connection without an answer; whether it did what was "
                      "asked is unknown"
                    : "mechad closed the connection without an answer"};
}

}  // namespace

ControlCall::ControlCall(const std::string& socket_path, const Params& params, Time until)
    : channel_(connect_to_daemon(socket_path, until)),
      is_kill_(std::holds_alternative<KillParams>(params)),
      run_(run_of(params)) {
    channel_.send(encode_call(Call{RequestId(call_id), params}));
}

std::optional<JsonValue> ControlCall::take_answer() {
    while (const auto line = channel_.take_line()) {
        auto message = decode_daemon_message(*line);
        if (!message) throw bad_answer(message.error().message(), fate_of(is_kill_));
        if (const auto* const error = std::get_if<ErrorReply>(&*message)) {
            if (error->id.value_or(call_id) == RequestId(call_id)) {
                throw refusal(*error, fate_of(is_kill_));
            }
            throw bad_answer("an error of another call", fate_of(is_kill_));
        }
        if (auto* const reply = std::get_if<Reply>(&*message)) return result_of(std::move(*reply));
    }
    if (channel_.is_receive_over()) throw unanswered(is_kill_);
    if (channel_.waiting_bytes() > Channel::line_bytes_max) {
        throw bad_answer("a line without end", fate_of(is_kill_));
    }
    return std::nullopt;
}

JsonValue ControlCall::result_of(Reply reply) const {
    if (reply.id != RequestId(call_id)) {
        throw bad_answer("an answer to another call", fate_of(is_kill_));
    }
    if (!is_kill_) return std::move(reply.result);
    const auto report = decode_kill_report(reply.result);
    if (!report) throw bad_answer(report.error().message(), Executed::unknown);
    if (report->run != run_) throw bad_answer("an answer about another run", Executed::unknown);
    return std::move(reply.result);
}

JsonValue ask(const std::string& socket_path, const ControlCall::Params& params, Time until) {
    ControlCall call(socket_path, params, until);
    Turns turns(until);
    for (;;) {
        if (auto answer = call.take_answer()) return *std::move(answer);
        if (!turns.take() || !call.channel().wait(until)) {
            throw late("mechad's answer", fate_of(std::holds_alternative<KillParams>(params)));
        }
    }
}

}  // namespace mechad::client
