// SPDX-License-Identifier: MIT
// What is asked of the daemon. PROTOCOL.md, "spawn", says what each member means and what is
// refused: the library leaves the judgement to the daemon. Strings said to be bytes may hold any
// byte but NUL; all others are UTF-8 and refused (invalid_request) when they are not.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace mechad::client {

// What the command reads.
struct NoInput {  // an immediate end
    bool operator==(const NoInput&) const = default;
};
struct StreamedInput {  // what Run::write_stdin brings, until Run::close_stdin
    bool operator==(const StreamedInput&) const = default;
};
struct FixedInput {     // these bytes, then the end
    std::string bytes;  // any byte, NUL too; of any size
    bool operator==(const FixedInput&) const = default;
};
using Input = std::variant<NoInput, StreamedInput, FixedInput>;

// At the output limit: deliver no more and keep counting, or end the run.
enum class AtOutputLimit { truncate, kill };

struct SpawnRequest {
    // Exactly one of the two.
    std::optional<std::string> command = {};  // bytes; run by `bash -lc`
    std::vector<std::string> argv = {};       // bytes; no shell

    std::string workspace = {};           // bytes; absolute: what the command may write
    std::optional<std::string> cwd = {};  // bytes; default: the workspace
    std::optional<bool> network = {};     // default: the daemon's policy
    Input input = {};                     // default: none
    std::optional<std::chrono::milliseconds> timeout = {};  // from exec, kept by the daemon
    std::optional<std::uint64_t> output_limit_bytes = {};   // of each of stdout and stderr
    AtOutputLimit at_output_limit = AtOutputLimit::truncate;
    std::string label = {};  // shown by status and list

    // Added to the command's environment, over the policy's. The environment of this process is
    // never passed on. Names are UTF-8 and unique, values are bytes.
    std::vector<std::pair<std::string, std::string>> env = {};

    bool operator==(const SpawnRequest&) const = default;
};

}  // namespace mechad::client
