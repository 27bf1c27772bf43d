// SPDX-License-Identifier: MIT
// Any stderr gives few hints, short and plain, and none that offers what must not be offered.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "daemon/hints.hpp"
#include "daemon/place_names.hpp"

using namespace mechad;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

std::optional<std::string> fault_of(const std::string& path) {
    for (const std::string tree : kernel_trees) {
        if ((path + "/").starts_with(tree + "/")) return "it is no place for a command";
    }
    if (path == "/home" || path == "/home/u" || path == "/root") return "it is or holds a home";
    return std::nullopt;
}

const BoxView box{.is_confined = true,
                  .home = "/home/u",
                  .system = {"/usr", "/etc"},
                  .private_directories = {"/tmp"},
                  .binds = {{"/srv/ro", Access::read_only}, {"/home/u/proj", Access::read_write}},
                  .find_fault = fault_of};

// Empty when the hint offers no key for a path.
std::string offered_path(const std::string& hint) {
    if (!hint.ends_with(" can name it")) return {};
    const std::size_t begin = hint.find('/');
    return hint.substr(begin, hint.find(", which", begin) - begin);
}

void check(const std::string& hint) {
    require(hint.size() <= hint_bytes_max && hint.starts_with("Perhaps "));
    require(std::all_of(hint.begin(), hint.end(),
                        [](char letter) { return letter >= 0x20 && letter < 0x7f; }));
    const std::string path = offered_path(hint);
    if (path.empty()) return;
    require(!fault_of(path) && !find_credential_name(path));
    require(path.find("/.") == std::string::npos && path.find("//") == std::string::npos);
    require(path.find(' ') == std::string::npos && !path.starts_with("/root/"));
    require(hint.find("sandbox.writable") == std::string::npos ||
            (path + "/").find("/bin/") == std::string::npos);
    require(!path.starts_with("/home/") || path.starts_with("/home/u/"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    const std::string text(bytes, bytes + size);
    for (const int exit_code : {0, 1, 127}) {
        const auto hints = make_hints({.stderr_lines = text, .exit_code = exit_code}, box);
        require(hints.size() <= (exit_code == 0 ? 0 : hints_max));
        for (const std::string& hint : hints) check(hint);
    }
    return 0;
}
