// SPDX-License-Identifier: MIT
// An empty configuration, that is the defaults, as a file for the time of its life.
#pragma once

#include <string>

#include "daemon/os/unique_fd.hpp"

namespace mechad::ctl {

class ScratchConfig {
public:
    ScratchConfig();
    ScratchConfig(const ScratchConfig&) = delete;
    ScratchConfig& operator=(const ScratchConfig&) = delete;

    // Valid for this process and its children. Of no file when none could be made: mechad says so.
    const std::string& path() const { return path_; }

private:
    os::UniqueFd file_;  // anonymous: there is nothing to remove
    std::string path_;
};

}  // namespace mechad::ctl
