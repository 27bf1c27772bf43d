// SPDX-License-Identifier: MIT
#include "client/run_channel.hpp"

#include <utility>

#include "client/failure.hpp"

namespace mechad::client {

namespace {

constexpr std::int64_t spawn_id = 1;

}  // namespace

RunChannel::RunChannel(os::UniqueFd socket, const SpawnParams& spawn,
                       std::optional<std::string> fixed_input)
    : channel_(std::move(socket)),
      is_fed_(fixed_input.has_value()),
      is_input_open_(std::holds_alternative<StdinStream>(spawn.stdin_spec)) {
    if (fixed_input) fixed_input_ = *std::move(fixed_input);
    channel_.send(encode_call(Call{RequestId(spawn_id), spawn}));
}

Executed RunChannel::executed() const {
    if (is_started()) return Executed::yes;
    // Nothing but the spawn is sent before the start, not even the end of the input, and a part of
    // its line is no request.
    return channel_.unsent_bytes() > 0 ? Executed::no : Executed::unknown;
}

std::optional<RunMessage> RunChannel::take() {
    check();
    try {
        while (!is_over_) {
            const auto line = channel_.take_line();
            if (line) {
                if (auto message = understand(*line)) return message;
                continue;
            }
            if (channel_.is_receive_over()) throw lost_connection(executed());
            if (channel_.waiting_bytes() > Channel::line_bytes_max) {
                throw bad_answer("a line without end", executed());
            }
            break;
        }
    } catch (const Error& error) {
        failure_ = with_fate(error);
        close();
    }
    check();
    return std::nullopt;
}

void RunChannel::check() const {
    if (failure_) throw *failure_;
}

std::optional<RunMessage> RunChannel::understand(std::string_view line) {
    auto message = decode_daemon_message(line);
    if (!message) throw bad_answer(message.error().message(), executed());
    if (auto* const output = std::get_if<mechad::Output>(&*message)) {
        require_started("output");
        return std::move(*output);
    }
    if (auto* const started = std::get_if<mechad::Started>(&*message)) {
        if (is_started()) throw bad_answer("a second start", executed());
        run_ = started->run;
        if (is_eof_due_) channel_.send(encode_stdin_eof());
        feed();
        return std::move(*started);
    }
    if (auto* const changed = std::get_if<mechad::Changed>(&*message)) {
        require_started("a change");
        return std::move(*changed);
    }
    if (const auto* const error = std::get_if<ErrorReply>(&*message)) {
        if (error->id.value_or(spawn_id) != RequestId(spawn_id)) {
            throw bad_answer("an error of another call", executed());
        }
        throw refusal(*error, executed());
    }
    if (const auto* const reply = std::get_if<Reply>(&*message)) {
        require_started("a result");
        if (reply->id != RequestId(spawn_id)) {
            throw bad_answer("an answer to another call", executed());
        }
        auto report = decode_exit_report(reply->result);
        if (!report) throw bad_answer(report.error().message(), executed());
        close();
        return *std::move(report);
    }
    return std::nullopt;  // a notification of a later version
}

void RunChannel::require_started(std::string_view what) const {
    if (!is_started()) throw bad_answer(std::string(what) + " before the start", executed());
}

bool RunChannel::wait(Time until) {
    const bool is_ready = channel_.wait(until);
    feed();
    return is_ready;
}

void RunChannel::exchange() {
    channel_.exchange();
    feed();
}

void RunChannel::flush() {
    channel_.flush();
    feed();
}

bool RunChannel::takes_input() const {
    return is_input_open_ && is_started() && !is_over_ && !channel_.is_send_over() &&
           channel_.unsent_bytes() == 0;
}

std::size_t RunChannel::give_input(std::string_view bytes) {
    const auto part = bytes.substr(0, input_bytes_max);
    std::string lines;
    append_stdin(part, lines);
    channel_.send(lines);
    return part.size();
}

void RunChannel::end_input() {
    if (!is_input_open_) return;
    is_input_open_ = false;
    is_eof_due_ = !is_started();
    if (!is_over_ && !is_eof_due_) channel_.send(encode_stdin_eof());
}

void RunChannel::feed() {
    if (!is_fed_) return;
    while (takes_input() && fed_ < fixed_input_.size()) {
        fed_ += give_input(std::string_view(fixed_input_).substr(fed_));
    }
    if (fed_ < fixed_input_.size() || !is_started()) return;
    end_input();
    fixed_input_ = {};
    is_fed_ = false;
}

void RunChannel::queue_signal(int signal) {
    if (!is_over_) channel_.send(encode_signal(signal));
}

void RunChannel::close() {
    is_over_ = true;
    channel_ = Channel(os::UniqueFd());
}

}  // namespace mechad::client
