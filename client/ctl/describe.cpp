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
    print_backend(box.backend, box.confined);
    print_fact("network", word_for_network(box.network));
    print_capabilities(box.capabilities);
    if (box.claims.empty()) print_fact("claims", "none");
    for (const auto& claim : box.claims) print_fact("claim", claim.key + ": " + claim.value);
    for (const auto& bind : report.binds) {
        print_fact(bind.access == Access::read_only ? "read-only" : "writable",
                   os::printable(bind.path));
    }
    for (const auto& note : box.notes) print_fact("note", note);
}

}  // namespace

int describe(const std::string& socket_path, const SpawnParams& spawn, bool as_json) {
    const auto answer = ask(socket_path, DescribeParams{spawn}, decode_describe_report);
    if (!answer) return fail(answer.error());
    if (as_json) {
        std::cout << to_json(answer->json) << "\n";
    } else {
        print_description(answer->report);
    }
    return 0;
}

}  // namespace mechad::ctl
