// SPDX-License-Identifier: MIT
// Turns the bytes of one output stream into `output` lines. The fastest path of the daemon: it
// appends to a string that the caller keeps and reuses.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "proto/messages.hpp"

namespace mechad {

// Appends a member "text":"…", or "base64":"…" when `bytes` is not text or is mostly escapes, using
// at most `room` bytes (64 or more). Returns how many bytes it took: all, or as many whole
// characters as fit.
std::size_t append_payload(std::string_view bytes, std::size_t room, std::string& out);

// The lines of a stream concatenate to exactly its bytes, and no line ends inside a character:
// the beginning of one at the end of a chunk waits (at most 3 bytes) for the next chunk.
class OutputEncoder {
public:
    explicit OutputEncoder(OutputStream stream);

    // Appends the lines for `chunk`; each is at most daemon_line_bytes_max long, LF included.
    void append(std::string_view chunk, std::string& out);

    // Appends what was held back: the stream ended, or its limit was reached.
    void finish(std::string& out);

private:
    void append_lines(std::string_view bytes, std::string& out) const;

    std::string_view line_begin_;
    std::string held_;
};

}  // namespace mechad
