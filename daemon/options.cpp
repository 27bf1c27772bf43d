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

Result<Options> parse_options(const std::vector<std::string>& words) {
    const auto fault = [](const std::string& message) {
        return Error(ErrorKind::invalid_request, message, {}, "mechad --help");
    };
    Options options;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        const auto equals = word.starts_with("--") ? word.find('=') : std::string::npos;
        const std::string name = word.substr(0, equals);
        if (word == "--check") {
            options.check = true;
        } else if (word == "--json") {
            options.json = true;
        } else if (word == "--version") {
            options.show_version = true;
        } else if (word == "--help") {
            options.show_help = true;
        } else if (name == "--config" || name == "--socket" || name == "--kind") {
            if (equals == std::string::npos && i + 1 == words.size()) {
                return fault(name + " needs a value");
            }
            const std::string value =
                equals == std::string::npos ? words[++i] : word.substr(equals + 1);
            if (value.empty()) return fault(name + " needs a value that is not empty");
            if (name == "--config") options.config = value;
            if (name == "--socket") options.socket = value;
            if (name == "--kind") options.kind = value;
        } else {
            return fault("unknown option " + word);
        }
    }
    if (!options.check && (options.json || options.kind)) {
        return fault("--json and --kind go with --check");
    }
    return options;
}

}  // namespace mechad
