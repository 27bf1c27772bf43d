// SPDX-License-Identifier: MIT
#include <iostream>

#include "client/ctl/commands.hpp"
#include "daemon/os/printable.hpp"

namespace mechad::ctl {

namespace {

void print_all(const char* kind, const std::vector<std::string>& sentences) {
    for (const auto& sentence : sentences) {
        std::cerr << "mechad-ctl: " << kind << ": " << os::printable(sentence) << "\n";
    }
}

}  // namespace

void print_advice(const ExitReport& report) {
    print_all("hint", report.hints);
    print_all("note", report.notes);
}

}  // namespace mechad::ctl
