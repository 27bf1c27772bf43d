// SPDX-License-Identifier: MIT
#include <iostream>

#include "client/ctl/ask.hpp"
#include "client/ctl/commands.hpp"
#include "client/ctl/words.hpp"
#include "daemon/os/printable.hpp"

namespace mechad::ctl {

namespace {

void print_description(const DescribeReport& report) {
    const BoxReport& box = report.box;
    std::cout << "backend      " << box.backend << (box.confined ? "" : ", NOTHING IS CONFINED")
              << "\n"
              << "network      " << (box.network ? "open" : "closed") << "\n";
    print_capabilities(box.capabilities);
    if (box.claims.empty()) std::cout << "claims       none\n";
    for (const auto& claim : box.claims) {
        std::cout << "claim        " << claim.key << ": " << claim.value << "\n";
    }
    for (const auto& bind : report.binds) {
        std::cout << (bind.access == Access::read_only ? "read-only    " : "writable     ")
                  << os::printable(bind.path) << "\n";
    }
    for (const auto& note : box.notes) std::cout << "note         " << note << "\n";
}

}  // namespace

int describe(const std::string& socket_path, const SpawnParams& spawn, bool as_json) {
    const auto answer = ask(socket_path, DescribeParams{spawn});
    if (!answer) {
        complain(answer.error().message(), answer.error().hint());
        return exit_refused;
    }
    const auto report = decode_describe_report(*answer);
    if (!report) {
        complain(report.error().message(), report.error().hint());
        return exit_refused;
    }
    if (as_json) {
        std::cout << to_json(*answer) << "\n";
    } else {
        print_description(*report);
    }
    return 0;
}

}  // namespace mechad::ctl
