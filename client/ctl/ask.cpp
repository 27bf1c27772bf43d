// SPDX-License-Identifier: MIT
#include "client/ctl/ask.hpp"

#include "client/socket.hpp"

namespace mechad::ctl {

Result<JsonValue> ask(const std::string& socket_path, const decltype(Call::params)& params) {
    auto socket = connect_to_daemon(socket_path);
    if (!socket) return socket.error();
    std::string inbox;
    // A refusal may be there although what we say is not read.
    (void)send_all(*socket, encode_call(Call{RequestId(std::int64_t{1}), params}));
    const auto line = receive_line(*socket, inbox);
    if (!line) return Error(ErrorKind::internal, "mechad closed the connection without an answer");
    auto message = decode_daemon_message(*line);
    if (!message) return message.error();
    if (auto* reply = std::get_if<Reply>(&*message)) return std::move(reply->result);
    if (const auto* error = std::get_if<ErrorReply>(&*message)) {
        return Error(error_kind_from(error->kind).value_or(ErrorKind::internal), error->message, {},
                     error->hint);
    }
    return Error(ErrorKind::internal, "mechad did not answer the question");
}

}  // namespace mechad::ctl
