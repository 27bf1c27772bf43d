// SPDX-License-Identifier: MIT
#include "daemon/connection_client.hpp"

namespace mechad {

namespace asio = boost::asio;

asio::awaitable<bool> ConnectionClient::started(const Started& started) {
    const std::string line = encode_started(started);
    co_return co_await connection_.write(line);
}

asio::awaitable<bool> ConnectionClient::output(OutputStream stream, std::string_view bytes) {
    Outlet& target = outlet(stream);
    target.lines.clear();
    target.encoder.append(bytes, target.lines);
    co_return co_await connection_.write(target.lines);
}

asio::awaitable<bool> ConnectionClient::output_ended(OutputStream stream) {
    Outlet& target = outlet(stream);
    target.lines.clear();
    target.encoder.finish(target.lines);
    if (target.lines.empty()) co_return true;
    co_return co_await connection_.write(target.lines);
}

asio::awaitable<bool> ConnectionClient::changed(const Changed& changed) {
    const std::string line = encode_changed(changed);
    co_return co_await connection_.write(line);
}

// Anything but stdin and signal ends the run: a client that says what makes no sense may mean
// anything by what it says next.
asio::awaitable<ClientInput> ConnectionClient::next_input() {
    const ReadLine read = co_await connection_.read_line();
    if (read.end == ReadEnd::half_closed && read.line.empty()) co_return HalfClosed{};
    if (read.end == ReadEnd::closed) co_return Gone{};

    auto failure = DecodeFailure(
        std::nullopt,
        Error(ErrorKind::parse_error, "the line is longer than 1 MiB, or unfinished"));
    if (read.end == ReadEnd::line) {
        auto message = decode_client_message(read.line);
        if (!message) {
            failure = message.error();
        } else if (auto* bytes = std::get_if<StdinMessage>(&*message)) {
            co_return std::move(*bytes);
        } else if (const auto* signal = std::get_if<SignalMessage>(&*message)) {
            co_return *signal;
        } else {
            failure = DecodeFailure(
                std::get<Call>(*message).id,
                Error(ErrorKind::unknown_method, "a connection carries one run and no other call",
                      "method", "open a connection of its own for it"));
        }
    }
    const std::string line = encode_error(failure.id(), failure.error(), CommandState::running);
    (void)co_await connection_.write(line);
    co_return Gone{};
}

}  // namespace mechad
