// SPDX-License-Identifier: MIT
// Where tests find what they run and read. An installed copy of them works without the build tree
// and the clone, which another user may be unable to enter.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace mechad::test {

// libexec/mechad lies beside the bin/ of this test program, built and installed alike.
inline std::string libexec_program(const std::string& name) {
    const auto self = std::filesystem::read_symlink("/proc/self/exe");
    return self.parent_path().parent_path() / "libexec" / "mechad" / name;
}

inline std::string init_path() { return libexec_program("mechad-init"); }

inline std::string source_dir() {
    const char* staged = std::getenv("MECHAD_SOURCE_DIR");
    return staged != nullptr ? staged : MECHAD_SOURCE_DIR;
}

}  // namespace mechad::test
