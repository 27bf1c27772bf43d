// SPDX-License-Identifier: MIT
#include "daemon/preflight/launcher_check.hpp"

#include <chrono>

#include "daemon/launch/tool_output.hpp"
#include "daemon/preflight/diagnosis.hpp"

namespace mechad {

namespace {

constexpr std::chrono::seconds answer_deadline{5};

}  // namespace

boost::asio::awaitable<void> check_bwrap(const boost::asio::any_io_executor& executor,
                                         Reaper& reaper, os::HostFacts& facts) {
    os::find_bwrap(facts);
    if (facts.bwrap.empty()) co_return;
    const std::string path = facts.bwrap;
    const auto version =
        co_await read_output_of(executor, reaper, path, "--version", answer_deadline);
    const auto help = co_await read_output_of(executor, reaper, path, "--help", answer_deadline);
    if (!version || !help) {
        facts.bwrap_problem = version ? help.error().message() : version.error().message();
    } else {
        facts.bwrap_version = version->substr(0, version->find('\n'));
        facts.bwrap_problem = find_bwrap_shortcoming(facts.bwrap_version, *help);
        if (!facts.bwrap_problem.empty()) facts.bwrap_problem = path + ": " + facts.bwrap_problem;
    }
    if (!facts.bwrap_problem.empty()) facts.bwrap.clear();
}

}  // namespace mechad
