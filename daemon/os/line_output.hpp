// SPDX-License-Identifier: MIT
// Lines to an inherited descriptor whose reader may have stopped reading. Never waits for one.
#pragma once

#include <string>

#include "daemon/os/unique_fd.hpp"

namespace mechad::os {

class LineOutput {
public:
    // `fd` stays the caller's, and its flags as they are: others hold the same open file.
    explicit LineOutput(int fd);

    // `line` ends in a line feed. To a reader (a pipe, a socket, a terminal) at most PIPE_BUF bytes
    // of it go, the last of them "..." when it is longer. False when it is lost: not all of it was
    // taken at once.
    bool write(std::string line);

private:
    enum class Kind { file, socket, pipe };
    long write_some(const std::string& line) const;

    int fd_;
    Kind kind_ = Kind::file;
    UniqueFd own_;  // the same pipe or terminal, opened anew as non-blocking; where that may be
    bool is_torn_ = false;  // only part of the last line was taken
};

}  // namespace mechad::os
