// SPDX-License-Identifier: MIT
#include "daemon/os/journal.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
// Fields that say where in the source a line comes from are left out.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>
#include <unistd.h>

namespace mechad::os {

bool send_to_journal(const std::vector<std::string>& fields) {
    std::vector<iovec> parts;
    parts.reserve(fields.size());
    for (const std::string& field : fields) {
        parts.push_back({const_cast<char*>(field.data()), field.size()});
    }
    // Without a journal the call itself is silent and succeeds.
    return ::access("/run/systemd/journal/socket", F_OK) == 0 &&
           ::sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) == 0;
}

}  // namespace mechad::os
