// SPDX-License-Identifier: MIT
#include "daemon/options.hpp"

namespace mechad {

const char* const usage_text =
    "usage: mechad [--config FILE] [--socket PATH]\n"
    "       mechad --check [--json] [--kind KIND] [--config FILE] [--socket PATH]\n"
    "\n"
    "  --config FILE   read this configuration; otherwise $MECHAD_CONFIG,\n"
    "                  ${XDG_CONFIG_HOME:-~/.config}/mechad/config.toml,\n"
    "                  /etc/mechad/config.toml, or the defaults\n"
    "  --socket PATH   listen there; otherwise daemon.socket of the configuration,\n"
    "                  $MECHAD_SOCKET, $XDG_RUNTIME_DIR/mechad/mechad.sock, or\n"
    "                  /run/user/UID/mechad/mechad.sock. A socket that systemd passes is\n"
    "                  used as it is; the first two may then name no other\n"
    "  --check         probe the sandbox as at every start, print what was proved and\n"
    "                  end; needs no socket and may run beside a daemon\n"
    "  --json          with --check: print what the call `status` would answer\n"
    "  --kind KIND     with --check: probe this backend, whatever sandbox.kind says\n"
    "  --version       print the version\n"
    "  --help          print this text\n"
    "\n"
    "Exit codes: 0 stopped, or with --check all is proved; 1 failed to start, or with\n"
    "--check not proved; 78 the configuration is wrong; 130 and 143 a check that\n"
    "SIGINT or SIGTERM broke off.\n";

namespace {

Error fault(const std::string& message) {
    return Error(ErrorKind::invalid_request, message, {}, "mechad --help");
}

// The place of an option without a value; null when `word` is none.
bool* find_flag(Options& options, const std::string& word) {
    if (word == "--check") return &options.check;
    if (word == "--json") return &options.json;
    if (word == "--version") return &options.show_version;
    if (word == "--help") return &options.show_help;
    return nullptr;
}

std::optional<std::string>* find_value(Options& options, const std::string& name) {
    if (name == "--config") return &options.config;
    if (name == "--socket") return &options.socket;
    if (name == "--kind") return &options.kind;
    return nullptr;
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& words) {
    Options options;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (bool* const flag = find_flag(options, word)) {
            *flag = true;
            continue;
        }
        const auto equals = word.find('=');
        const std::string name = word.substr(0, equals);
        std::optional<std::string>* const value = find_value(options, name);
        if (value == nullptr) return fault("unknown option " + word);
        if (equals == std::string::npos && i + 1 == words.size()) {
            return fault(name + " needs a value");
        }
        *value = equals == std::string::npos ? words[++i] : word.substr(equals + 1);
        if ((*value)->empty()) return fault(name + " needs a value that is not empty");
    }
    if (!options.check && (options.json || options.kind)) {
        return fault("--json and --kind go with --check");
    }
    return options;
}

}  // namespace mechad
