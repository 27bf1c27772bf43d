// SPDX-License-Identifier: MIT
#include "client/ctl/doctor/scratch_config.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "daemon/os/syscalls.hpp"

namespace mechad::ctl {

ScratchConfig::ScratchConfig() {
    auto file = os::make_memfd("mechad-doctor", "");
    if (!file) return;
    file_ = *std::move(file);
    // mechad takes no configuration that others can write.
    if (::fchmod(file_.get(), 0600) != 0) file_.reset();
    path_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_.get());
}

}  // namespace mechad::ctl
