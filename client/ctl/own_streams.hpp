// SPDX-License-Identifier: MIT
// The streams and signals that mechad-ctl run was started with. All throw client::Error, of what
// was never executed.
#pragma once

#include <array>

#include "daemon/os/unique_fd.hpp"
#include "proto/messages.hpp"

namespace mechad::ctl {

// A socket that took the number of a closed stdout would be sent the command's output. What stands
// in for a closed stdin or stdout fails as that does; a closed stderr discards.
void occupy_closed_streams();

// Of what is to be forwarded. A signal that was ignored when this process began stays so: whoever
// started it (nohup, a shell's background job) wants it to reach nobody.
os::UniqueFd take_signals();

// Where the output goes. A terminal may block in write(2) although poll(2) promised room, and its
// description is shared with whoever started us, so that it has one of our own here that does not.
class Outlets {
public:
    Outlets();
    int fd(OutputStream stream) const;

private:
    std::array<os::UniqueFd, 2> terminals_;  // of stdout and stderr; none where they are to be used
};

}  // namespace mechad::ctl
