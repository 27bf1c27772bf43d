// SPDX-License-Identifier: MIT
#include <iostream>

#include "client/ctl/commands.hpp"
#include "client/ctl/verbs.hpp"
#include "client/socket.hpp"
#include "daemon/os/printable.hpp"
#include "proto/utf8.hpp"

namespace mechad::ctl {

namespace {

constexpr std::size_t half_bytes_max = 2048;

// Names in it may be a command's: what would steer a terminal is escaped. Of what is too long the
// middle is left out: the end says whether anything was executed.
std::string shortened(std::string_view text) {
    if (text.size() <= 2 * half_bytes_max) return os::printable(text);
    return os::printable(utf8_prefix(text, half_bytes_max)) + "..." +
           os::printable(text.substr(text.size() - half_bytes_max));
}

}  // namespace

void complain(const std::string& message, const std::string& hint) {
    std::cerr << "mechad-ctl: " << shortened(message)
              << (hint.empty() ? "" : " (" + shortened(hint) + ")") << "\n";
}

int fail(const Error& error) {
    complain(error.message(), error.hint());
    return exit_refused;
}

namespace {

int refuse(const Error& error) {
    complain(error.message() + ". Nothing was executed.", error.hint());
    return exit_refused;
}

int act(const Verb& verb, Words& words, Options& options) {
    if (auto parsed = verb.parse(words, options); !parsed) return refuse(parsed.error());
    if (options.socket.empty()) options.socket = find_socket_path();
    return verb.act(options);
}

int act(const std::vector<std::string>& all) {
    Options options;
    Words words(all);
    while (!words.is_over()) {
        const std::string word = words.take();
        if (word == "--help") {
            std::cout << help_text();
            return 0;
        }
        if (word == "--version") {
            std::cout << "mechad-ctl " << MECHAD_VERSION << "\n";
            return 0;
        }
        if (word == "--socket") {
            if (words.is_over()) return refuse(fault("--socket needs a path"));
            options.socket = words.take();
            continue;
        }
        const Verb* const verb = find_verb(word);
        if (verb == nullptr) return refuse(fault("unknown word " + word));
        if (words.next_is("--help")) {
            std::cout << help_text(*verb);
            return 0;
        }
        return act(*verb, words, options);
    }
    return refuse(fault("say what to do"));
}

// What was printed has to have arrived.
int act_and_flush(const std::vector<std::string>& all) {
    const int code = act(all);
    if (std::cout.flush()) return code;
    complain("cannot write to stdout", {});
    return exit_refused;
}

}  // namespace

}  // namespace mechad::ctl

int main(int argc, char** argv) { return mechad::ctl::act_and_flush({argv + 1, argv + argc}); }
