// SPDX-License-Identifier: MIT
#include "client/ctl/options.hpp"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>

namespace mechad::ctl {

const char* const usage_text =
    "usage: mechad-ctl [--socket PATH] run [OPTION]... -- PROGRAM [ARG]...\n"
    "       mechad-ctl [--socket PATH] run [OPTION]... -c COMMAND\n"
    "       mechad-ctl [--socket PATH] describe [--workspace D] [--network|--no-network] [--json]\n"
    "       mechad-ctl [--socket PATH] status [--json]\n"
    "       mechad-ctl [--socket PATH] recheck\n"
    "       mechad-ctl [--socket PATH] doctor [--json]\n"
    "\n"
    "run: in a box. describe: what such a run would be told, starting nothing. status: of the\n"
    "daemon. recheck: prove the sandbox again.\n"
    "\n"
    "  --workspace D     run there; default: the current directory\n"
    "  --cwd D           working directory beneath the workspace\n"
    "  --network         open the network for this run\n"
    "  --no-network      close it\n"
    "  --env NAME=VALUE  set a variable; --env NAME passes one on\n"
    "  --timeout S       end the run after S seconds (fractions allowed)\n"
    "  --output-limit N  deliver at most N bytes of each output stream\n"
    "  --label L         a name for list and status\n"
    "\n"
    "Exit codes of run: the command's own, 128+N when signal N ended it, 124 timeout,\n"
    "125 mechad refused or is absent, 126 not executable, 127 not found. With 125 to\n"
    "127 and a line on stderr, nothing was executed.\n"
    "Exit codes of status and recheck: 0 proved, 1 refusing, 125 unreachable.\n"
    "Exit codes of describe: 0 answered, 125 refused or unreachable.\n";

namespace {

Error fault(const std::string& message) {
    return Error(ErrorKind::invalid_request, message, {}, "mechad-ctl --help");
}

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
    if (equals != std::string::npos) {
        spawn.env.emplace_back(name, entry.substr(equals + 1));
        return {};
    }
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): one thread
    if (value == nullptr) return fault("--env " + name + ": there is no such variable here");
    spawn.env.emplace_back(name, value);
    return {};
}

class Words {
public:
    explicit Words(const std::vector<std::string>& words) : words_(words) {}
    bool is_over() const { return next_ == words_.size(); }
    const std::string& take() { return words_[next_++]; }
    std::vector<std::string> take_rest() {
        std::vector<std::string> rest(words_.begin() + static_cast<std::ptrdiff_t>(next_),
                                      words_.end());
        next_ = words_.size();
        return rest;
    }

private:
    const std::vector<std::string>& words_;
    std::size_t next_ = 0;
};

// Options that take a value.
Result<void> take_value(SpawnParams& spawn, const std::string& name, const std::string& value) {
    if (name == "--workspace") {
        spawn.workspace = std::filesystem::absolute(value).lexically_normal();
    } else if (name == "--cwd") {
        spawn.cwd = value;
    } else if (name == "--env") {
        return add_env(spawn, value);
    } else if (name == "--label") {
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

Result<void> parse_run(Words& words, SpawnParams& spawn) {
    while (!words.is_over()) {
        const std::string word = words.take();
        if (word == "--" || word.empty() || word.front() != '-') {
            spawn.argv = words.take_rest();
            if (word != "--") spawn.argv->insert(spawn.argv->begin(), word);
        } else if (word == "--network" || word == "--no-network") {
            if (auto chosen = choose_network(spawn, word == "--network"); !chosen) return chosen;
        } else {
            if (words.is_over()) return fault("run: " + word + " is unknown or lacks its value");
            if (auto taken = take_value(spawn, word, words.take()); !taken) return taken.error();
        }
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
    for (const auto& rest : words.take_rest()) {
        if (rest != "--json") return fault("only --json may follow, not " + rest);
        options.json = true;
    }
    return {};
}

// What follows the verb, which is the last word before its own.
Result<void> parse_verb(const std::string& verb, Words& words, Options& options) {
    if (verb == "run") {
        options.verb = Verb::run;
        return parse_run(words, options.spawn);
    }
    if (verb == "describe") {
        options.verb = Verb::describe;
        return parse_describe(words, options);
    }
    if (verb == "status") {
        options.verb = Verb::status;
        return parse_status(words, options);
    }
    if (verb == "doctor") {
        options.verb = Verb::doctor;
        return parse_status(words, options);
    }
    if (verb == "recheck") {
        options.verb = Verb::recheck;
        if (!words.is_over()) return fault("recheck: unknown option " + words.take());
        return {};
    }
    return fault("unknown word " + verb);
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& all) {
    Options options;
    Words words(all);
    while (!words.is_over()) {
        const std::string word = words.take();
        if (word == "--socket") {
            if (words.is_over()) return fault("--socket needs a path");
            options.socket = words.take();
        } else if (word == "--help" || word == "--version") {
            options.verb = word == "--help" ? Verb::help : Verb::version;
            return options;
        } else {
            if (auto parsed = parse_verb(word, words, options); !parsed) return parsed.error();
            return options;
        }
    }
    return fault("say what to do");
}

}  // namespace mechad::ctl
