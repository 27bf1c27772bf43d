// SPDX-License-Identifier: MIT
#include "proto/output_encoder.hpp"

#include <algorithm>
#include <span>

#include "proto/base64.hpp"
#include "proto/json_text.hpp"
#include "proto/output_line.hpp"
#include "proto/utf8.hpp"

namespace mechad {

namespace {

// Base64 is a third longer than the bytes. Text may become half as long again before it gives way:
// the JSON that tools print, every third byte a quote, stays readable on the wire.
bool is_worth_escaping(const EscapedText& text) {
    return text.written * 2 <= text.read * 3 || text.written <= base64_size(text.read);
}

// Text is escaped into the line at once and taken back when it turns out not to be text: one
// pass for what commands nearly always write.
std::size_t try_append_text(std::string_view bytes, std::size_t room, std::string& out) {
    const std::size_t start = out.size();
    out += output_line::text_begin;
    const std::size_t body = out.size();
    // Not the whole room for a short chunk: resize zeroes it.
    out.resize(std::min(start + room - 1, body + bytes.size() * escape_bytes_max));
    const EscapedText text = escape_text(bytes, std::span(out).subspan(body));
    if (!text.is_text || !is_worth_escaping(text)) {
        out.resize(start);
        return 0;
    }
    out.resize(body + text.written);
    out += '"';
    return text.read;
}

std::size_t append_as_base64(std::string_view bytes, std::size_t room, std::string& out) {
    const std::size_t size_max = (room - output_line::base64_begin.size() - 1) / 4 * 3;
    std::string_view piece = bytes.substr(0, size_max);
    if (piece.size() < bytes.size()) piece.remove_suffix(incomplete_tail_bytes(piece));
    out += output_line::base64_begin;
    append_base64(piece, out);
    out += '"';
    return piece.size();
}

}  // namespace

std::size_t append_payload(std::string_view bytes, std::size_t room, std::string& out) {
    const std::size_t as_text = try_append_text(bytes, room, out);
    return as_text != 0 ? as_text : append_as_base64(bytes, room, out);
}

OutputEncoder::OutputEncoder(OutputStream stream)
    : line_begin_(stream == OutputStream::out ? output_line::stdout_begin
                                              : output_line::stderr_begin) {}

void OutputEncoder::append(std::string_view chunk, std::string& out) {
    if (held_.empty()) {
        const std::size_t tail = incomplete_tail_bytes(chunk);
        append_lines(chunk.substr(0, chunk.size() - tail), out);
        held_ = chunk.substr(chunk.size() - tail);
        return;
    }
    held_ += chunk;
    const std::size_t tail = incomplete_tail_bytes(held_);
    append_lines(std::string_view(held_).substr(0, held_.size() - tail), out);
    held_.erase(0, held_.size() - tail);
}

void OutputEncoder::finish(std::string& out) {
    append_lines(held_, out);
    held_.clear();
}

void OutputEncoder::append_lines(std::string_view bytes, std::string& out) const {
    const std::size_t room =
        daemon_line_bytes_max - line_begin_.size() - output_line::line_end.size();
    while (!bytes.empty()) {
        out += line_begin_;
        bytes.remove_prefix(append_payload(bytes, room, out));
        out += output_line::line_end;
    }
}

}  // namespace mechad
