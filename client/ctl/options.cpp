// SPDX-License-Identifier: MIT
#include "client/ctl/options.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "proto/signals.hpp"
#include "proto/utf8.hpp"

namespace mechad::ctl {

Error fault(const std::string& message) {
    return Error(ErrorKind::invalid_request, message, {}, "mechad-ctl --help");
}

std::vector<std::string> Words::take_rest() {
    std::vector<std::string> rest(words_.begin() + static_cast<std::ptrdiff_t>(next_),
                                  words_.end());
    next_ = words_.size();
    return rest;
}

namespace {

std::optional<std::chrono::milliseconds> parse_seconds(const std::string& text) {
    double seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    if (!std::isfinite(seconds) || seconds < 0.001 || seconds > 1e9) return std::nullopt;
    return std::chrono::milliseconds(std::llround(seconds * 1000));
}

std::optional<std::uint64_t> parse_count(const std::string& text) {
    std::uint64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return count;
}

Result<void> add_env(SpawnParams& spawn, const std::string& entry) {
    const auto equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (name.empty()) return fault("--env needs NAME=VALUE or NAME");
    if (!is_text(name)) return fault("--env: the name is not UTF-8");
    if (equals != std::string::npos) {
        spawn.env.emplace_back(name, entry.substr(equals + 1));
        return {};
    }
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): one thread
    if (value == nullptr) return fault("--env " + name + ": there is no such variable here");
    spawn.env.emplace_back(name, value);
    return {};
}

// As the shell's user means it: "." and ".." are resolved here, and only where that cannot lead
// somewhere else than the links of the path do. Whether links are allowed is for the daemon to say.
Result<void> take_workspace(SpawnParams& spawn, const std::string& value) {
    namespace fs = std::filesystem;
    if (value.empty()) return fault("--workspace needs a directory");
    std::error_code error;
    const fs::path path = fs::absolute(value, error);
    if (error) return fault("--workspace " + value + ": the current directory is gone");
    const fs::path text = path.lexically_normal();
    const bool has_parent = std::find(path.begin(), path.end(), "..") != path.end();
    if (has_parent && !fs::equivalent(path, text, error)) {
        return fault("--workspace " + value +
                     " leads elsewhere than it says, by a link before \"..\"; "
                     "name the directory without \"..\"");
    }
    spawn.workspace = text;
    return {};
}

// Options that take a value.
Result<void> take_value(SpawnParams& spawn, const std::string& name, const std::string& value) {
    if (name == "--workspace") {
        return take_workspace(spawn, value);
    } else if (name == "--cwd") {
        spawn.cwd = value;
    } else if (name == "--env") {
        return add_env(spawn, value);
    } else if (name == "--label") {
        if (!is_text(value)) return fault("--label: not UTF-8");
        spawn.label = value;
    } else if (name == "--timeout") {
        spawn.timeout = parse_seconds(value);
        if (!spawn.timeout) return fault("--timeout needs seconds from 0.001 to 1e9");
    } else if (name == "--output-limit") {
        spawn.output_limit_bytes = parse_count(value);
        if (!spawn.output_limit_bytes) return fault("--output-limit needs a number of bytes");
    } else if (name == "-c") {
        spawn.command = value;
    } else {
        return fault("run: unknown option " + name);
    }
    return {};
}

Result<void> choose_network(SpawnParams& spawn, bool is_open) {
    if (spawn.network && *spawn.network != is_open) {
        return fault("--network and --no-network exclude each other");
    }
    spawn.network = is_open;
    return {};
}

Result<void> choose_workspace(SpawnParams& spawn) {
    if (!spawn.workspace.empty()) return {};
    std::error_code error;
    spawn.workspace = std::filesystem::current_path(error);
    if (error) return fault("the current directory is gone; name a --workspace");
    return {};
}

// By name, with or without SIG, or by number.
std::optional<int> parse_signal(const std::string& text) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) {
        return number >= 1 && number <= 64 ? std::optional(number) : std::nullopt;
    }
    return signal_number(text.starts_with("SIG") ? text : "SIG" + text);
}

// Options of run that take no value; false when it is another word.
Result<bool> take_flag(const std::string& word, Options& options) {
    if (word == "--hints") {
        options.hints = true;
        return true;
    }
    if (word != "--network" && word != "--no-network") return false;
    if (auto chosen = choose_network(options.spawn, word == "--network"); !chosen) {
        return chosen.error();
    }
    return true;
}

}  // namespace

Result<void> parse_run(Words& words, Options& options) {
    SpawnParams& spawn = options.spawn;
    while (!words.is_over()) {
        const std::string word = words.take();
        if (word == "--" || word.empty() || word.front() != '-') {
            spawn.argv = words.take_rest();
            if (word != "--") spawn.argv->insert(spawn.argv->begin(), word);
            continue;
        }
        const auto is_flag = take_flag(word, options);
        if (!is_flag) return is_flag.error();
        if (*is_flag) continue;
        if (words.is_over()) return fault("run: " + word + " is unknown or lacks its value");
        if (auto taken = take_value(spawn, word, words.take()); !taken) return taken.error();
    }
    const bool has_argv = spawn.argv && !spawn.argv->empty();
    if (has_argv == spawn.command.has_value()) {
        return fault("run: give either -c COMMAND or -- PROGRAM [ARG]...");
    }
    if (!has_argv) spawn.argv.reset();
    spawn.stdin_spec = StdinStream{};
    return choose_workspace(spawn);
}

Result<void> parse_describe(Words& words, Options& options) {
    while (!words.is_over()) {
        const std::string word = words.take();
        if (word == "--json") {
            options.json = true;
        } else if (word == "--network" || word == "--no-network") {
            if (auto chosen = choose_network(options.spawn, word == "--network"); !chosen) {
                return chosen;
            }
        } else if (word == "--workspace" && !words.is_over()) {
            if (auto taken = take_value(options.spawn, word, words.take()); !taken) return taken;
        } else {
            return fault("describe: " + word + " is unknown or lacks its value");
        }
    }
    return choose_workspace(options.spawn);
}

Result<void> parse_status(Words& words, Options& options) {
    for (const auto& word : words.take_rest()) {
        if (word != "--json") return fault("status: unknown option " + word);
        options.json = true;
    }
    return {};
}

Result<void> parse_doctor(Words& words, Options& options) {
    for (const auto& word : words.take_rest()) {
        if (word != "--json") return fault("doctor: unknown option " + word);
        options.json = true;
    }
    return {};
}

Result<void> parse_recheck(Words& words, Options&) {
    if (!words.is_over()) return fault("recheck: unknown option " + words.take());
    return {};
}

Result<void> parse_ps(Words& words, Options& options) {
    for (const auto& word : words.take_rest()) {
        if (word != "--json" && word != "--recent") return fault("ps: unknown option " + word);
        (word == "--json" ? options.json : options.list.recent) = true;
    }
    return {};
}

Result<void> parse_kill(Words& words, Options& options) {
    const auto rest = words.take_rest();
    if (rest.empty() || rest.size() > 2 || rest[0].empty() || rest[0].front() == '-') {
        return fault("kill: give RUN [SIGNAL]; mechad-ctl ps lists the runs");
    }
    options.kill.run = rest[0];
    if (rest.size() == 1) return {};
    options.kill.signal = parse_signal(rest[1]);
    if (options.kill.signal) return {};
    return fault("kill: " + rest[1] +
                 " is no signal; give a name such as TERM or SIGTERM, or a number from 1 to 64");
}

}  // namespace mechad::ctl
