// SPDX-License-Identifier: MIT
#include <iostream>

#include "client/ctl/commands.hpp"
#include "client/socket.hpp"
#include "daemon/os/printable.hpp"

namespace mechad::ctl {

void complain(const std::string& message, const std::string& hint) {
    // Names in it may be a command's: what would steer a terminal is escaped.
    std::cerr << "mechad-ctl: " << os::printable(message + (hint.empty() ? "" : " (" + hint + ")"))
              << "\n";
}

}  // namespace mechad::ctl

int main(int argc, char** argv) {
    using namespace mechad;
    using namespace mechad::ctl;
    const auto options = parse_options({argv + 1, argv + argc});
    if (!options) {
        complain(options.error().message() + ". Nothing was executed.", options.error().hint());
        return exit_refused;
    }
    const std::string socket = options->socket.empty() ? find_socket_path() : options->socket;
    switch (options->verb) {
        case Verb::help: std::cout << usage_text; return 0;
        case Verb::version: std::cout << "mechad-ctl " << MECHAD_VERSION << "\n"; return 0;
        case Verb::run: return run(socket, options->spawn);
        case Verb::describe: return describe(socket, options->spawn, options->json);
        case Verb::recheck: return recheck(socket);
        case Verb::doctor: return doctor(socket, options->json);
        case Verb::status: return status(socket, options->json);
    }
    return exit_refused;
}
