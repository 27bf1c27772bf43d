// SPDX-License-Identifier: MIT
// libFuzzer: whatever a peer sends, decoding ends; what was understood survives being written and
// read again; a refusal fits one line; output arrives whole.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "proto/codec.hpp"
#include "proto/output_encoder.hpp"
#include "proto/utf8.hpp"

using namespace mechad;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

std::string_view without_lf(std::string_view line) {
    require(line.ends_with('\n') && !find_invalid_utf8(line));
    line.remove_suffix(1);
    return line;
}

void check_refusal(const DecodeFailure& failure) {
    const std::string reply = encode_error(failure.id(), failure.error());
    require(reply.size() <= daemon_line_bytes_max);
    const auto message = decode_daemon_message(without_lf(reply));
    require(message.has_value());
    const auto& error = std::get<ErrorReply>(*message);
    require(error.id == failure.id() && error.message.ends_with("Nothing was executed."));
}

void check_request(std::string_view line) {
    const auto message = decode_client_message(line);
    if (!message) return check_refusal(message.error());
    if (const auto* const call = std::get_if<Call>(&*message)) {
        const auto again = decode_client_message(without_lf(encode_call(*call)));
        require(again.has_value() && *again == *message);
    }
}

void check_daemon_line(std::string_view line) {
    const auto message = decode_daemon_message(line);
    // A leading space keeps the fast path out: both readers must agree on every output line.
    const auto parsed = decode_daemon_message(" " + std::string(line));
    require(message.has_value() == parsed.has_value());
    if (!message) return;
    require(message->index() == parsed->index());
    if (const auto* const output = std::get_if<Output>(&*message)) {
        require(*output == std::get<Output>(*parsed));
    } else if (const auto* const reply = std::get_if<Reply>(&*message)) {
        (void)decode_exit_report(reply->result).has_value();
        (void)decode_status_report(reply->result).has_value();
        (void)decode_list_report(reply->result).has_value();
        (void)decode_describe_report(reply->result).has_value();
        (void)decode_preflight_report(reply->result).has_value();
        require(parse_json(to_json(reply->result)).has_value());
    }
}

void check_output(std::string_view bytes) {
    const std::size_t chunk_bytes =
        bytes.empty() ? 1 : 1 + static_cast<unsigned char>(bytes.front());
    OutputEncoder encoder(OutputStream::out);
    std::string lines;
    for (std::size_t at = 0; at < bytes.size(); at += chunk_bytes) {
        encoder.append(bytes.substr(at, chunk_bytes), lines);
    }
    encoder.finish(lines);
    std::string received;
    for (std::string_view rest(lines); !rest.empty();) {
        const std::size_t size = rest.find('\n') + 1;
        require(size != 0 && size <= daemon_line_bytes_max);
        const auto message = decode_daemon_message(without_lf(rest.substr(0, size)));
        require(message.has_value());
        received += std::get<Output>(*message).bytes;
        rest.remove_prefix(size);
    }
    require(received == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    const std::string input(bytes, bytes + size);
    check_request(input);
    check_daemon_line(input);
    check_output(input);
    return 0;
}
