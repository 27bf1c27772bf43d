// SPDX-License-Identifier: MIT
// Where the programs under test lie: libexec/mechad beside the bin/ of this test program, in the
// build tree and in an installed copy alike.
#pragma once

#include <filesystem>
#include <string>

namespace mechad::test {

inline std::string libexec_program(const std::string& name) {
    const auto self = std::filesystem::read_symlink("/proc/self/exe");
    return self.parent_path().parent_path() / "libexec" / "mechad" / name;
}

inline std::string init_path() { return libexec_program("mechad-init"); }

}  // namespace mechad::test
