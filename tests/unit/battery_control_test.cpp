// SPDX-License-Identifier: MIT
// The positive control of the whole battery: where nothing is confined, no denial is proved.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <map>

#include "daemon/launch/spawn.hpp"
#include "daemon/preflight/home_mounts.hpp"
#include "daemon/preflight/surroundings.hpp"
#include "tests/support/programs.hpp"
#include "tests/unit/child_process.hpp"
#include "tests/unit/result_printer.hpp"
#include "tests/unit/temp_tree.hpp"

using namespace mechad;

namespace {

ProbeAnswers parse_answers(const std::string& text) {
    ProbeAnswers answers;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = text.find('\n', at);
        const auto space = text.find(' ', at);
        answers[text.substr(at, space - at)] = text.substr(space + 1, end - space - 1);
        at = end + 1;
    }
    return answers;
}

// mechad-probe as it is, with one descriptor too many, in the scratch workspace.
ProbeAnswers run_unconfined(const std::vector<Probe>& battery, const Scratch& scratch,
                            const ProbeTargets& targets, const std::string& environment) {
    std::string questions = targets.token + '\0';
    for (const auto& probe : battery) {
        for (const auto& check : probe.checks) questions += check + '\0';
    }
    const auto input = os::make_memfd("questions", questions);
    const auto output = os::make_memfd("answers", "");
    const auto null = os::open_file("/dev/null", O_RDWR);
    must_succeed(::chdir(scratch.workspace().c_str()), "chdir");
    const auto pid = spawn(
        scratch.probe(), {"mechad-probe", "-", targets.word}, {environment},
        {.in = input->get(), .out = output->get(), .err = null->get(), .kept = {null->get()}});
    int status = -1;
    must_succeed(::waitpid(*pid, &status, 0) == *pid ? 0 : -1, "waitpid");
    must_succeed(status, "mechad-probe");
    return parse_answers(*os::read_file("/proc/self/fd/" + std::to_string(output->get()), 1 << 20));
}

// "NAME VERDICT\n" of each probe.
std::string judge_unconfined(const ScratchGround& ground) {
    const auto probe_binary = test::libexec_program("mechad-probe");
    auto& loop = *new boost::asio::io_context(1);  // goes with this process
    Reaper reaper(loop.get_executor());
    const auto scratch = Scratch::plant(ground, probe_binary);
    if (!scratch) return scratch.error().message();
    Surroundings surroundings(loop.get_executor(), reaper);
    if (auto set = surroundings.set_up(*scratch, probe_binary); !set) return set.error().message();
    ProbeTargets targets;
    scratch->add_to(targets);
    surroundings.add_to(targets);
    targets.own_socket = scratch->workspace() + "/" + targets.unix_path;
    if (!add_mounts(ground.homes, scratch->workspace(), {}, targets)) return "no mounts";
    const auto battery = make_battery(targets, NetworkProbe::closed, true);
    const auto [name, value] = surroundings.control_env();
    const auto answers = run_unconfined(battery, *scratch, targets, name + "=" + value);

    Sightings seen;
    std::string verdicts;
    const auto look = [&]() -> boost::asio::awaitable<void> {
        const auto looked = co_await surroundings.look(seen);
        verdicts = looked ? "" : looked.error().message();
        scratch->look(targets.token, seen);
        co_await surroundings.close();
        (void)co_await reaper.sweep_orphans();
        loop.stop();
    };
    boost::asio::co_spawn(loop, look(), boost::asio::detached);
    loop.run();
    for (const auto& report : judge(battery, answers, seen)) {
        const char* const word = report.verdict == ProbeVerdict::leak     ? "leak"
                                 : report.verdict == ProbeVerdict::proved ? "proved"
                                                                          : "broken";
        verdicts += report.name + " " + word + "\n";
    }
    return verdicts;
}

}  // namespace

TEST_CASE("battery: without a box every denial leaks, and every control holds") {
    const TempTree tree;
    ScratchGround ground;
    ground.state = tree.make_dir("state");
    std::filesystem::permissions(ground.state, std::filesystem::perms(0700));
    ground.homes = {tree.make_dir("home")};
    ground.temporary = {tree.make_dir("tmp")};
    ground.system = {tree.make_dir("usr")};
    const std::string text = outcome_in_child([&] { return judge_unconfined(ground); });
    INFO(text);

    const auto answers = parse_answers(text);
    CHECK(answers.size() >= 20);
    for (const auto& answer : answers) {
        const std::string& name = answer.first;
        const std::string& verdict = answer.second;
        const bool is_control = name.starts_with("workspace_") || name.starts_with("all_");
        // Which families there are, and who may use them, is this kernel's matter.
        if (name == "other_families_closed") {
            CHECK(verdict != "proved");
        } else {
            CHECK_MESSAGE(verdict == (is_control ? "proved" : "leak"), name);
        }
    }
}
