// SPDX-License-Identifier: MIT
#include "client/ctl/verbs.hpp"

#include <algorithm>
#include <array>

#include "client/ctl/commands.hpp"

namespace mechad::ctl {

namespace {

constexpr std::string_view run_usage =
    "run [OPTION]... -- PROGRAM [ARG]...\nrun [OPTION]... -c COMMAND";
constexpr std::string_view run_help =
    "run: a command in a box.\n"
    "  --workspace D     run there; default: the current directory\n"
    "  --cwd D           working directory beneath the workspace\n"
    "  --network         open the network for this run\n"
    "  --no-network      close it\n"
    "  --env NAME=VALUE  set a variable; --env NAME passes one on\n"
    "  --timeout S       end the run after S seconds (fractions allowed)\n"
    "  --output-limit N  deliver at most N bytes of each output stream\n"
    "  --label L         a name for ps and status\n"
    "  --hints           after the command ended, say on stderr what it may have lacked\n"
    "                    (a guess) and what is to know of the run\n"
    "  Exit codes: the command's own, 128+N when signal N ended it, 124 timeout; and,\n"
    "  with a line of mechad-ctl that says whether anything was executed, 125 mechad\n"
    "  refused, is absent or went away, 126 not executable, 127 not found.\n";
constexpr std::string_view describe_help =
    "describe: what a run would be told, starting nothing.\n"
    "  --workspace D, --network, --no-network: as for run. --json: for programs.\n"
    "  Exit codes: 0 answered, 125 refused or unreachable.\n";
constexpr std::string_view status_help =
    "status: of the daemon: what it proved, its limits, the runs that are active.\n"
    "  --json: for programs.\n"
    "  Exit codes: 0 proved, 1 refusing, 125 unreachable.\n";
constexpr std::string_view recheck_help =
    "recheck: prove the sandbox again.\n"
    "  Exit codes: 0 proved, 1 refusing, 125 unreachable.\n";
constexpr std::string_view ps_help =
    "ps: the runs that are active.\n"
    "  --recent          also the last that ended\n"
    "  --json            for programs\n"
    "  Exit codes: 0 answered, 125 refused or unreachable.\n";
constexpr std::string_view kill_help =
    "kill: end a run, politely and then not; with SIGNAL only send that to its command.\n"
    "  SIGNAL is a name with or without SIG, or a number.\n"
    "  Exit codes: 0 done, 1 no such run, 125 refused or unreachable.\n";
constexpr std::string_view doctor_help =
    "doctor: what would work here, what is wrong and how to mend it; with or without a\n"
    "daemon.\n"
    "  --json: for programs.\n"
    "  Exit codes: 0 nothing is bad, 1 something is.\n";
constexpr std::string_view tail_help =
    "\n"
    "  --socket PATH     where mechad listens; otherwise $MECHAD_SOCKET,\n"
    "                    $XDG_RUNTIME_DIR/mechad/mechad.sock, or\n"
    "                    /run/user/UID/mechad/mechad.sock\n"
    "  --version, --help\n"
    "\n"
    "mechad-ctl VERB --help says of one verb what is said here of all. Colour is for\n"
    "terminals, and not when NO_COLOR is set.\n";

constexpr auto verbs = std::to_array<Verb>({
    {"run", run_usage, run_help, parse_run,
     [](const Options& given) {
         return run(given.socket, given.spawn, given.hints ? Advice::shown : Advice::hidden);
     }},
    {"describe", "describe [--workspace D] [--network|--no-network] [--json]", describe_help,
     parse_describe,
     [](const Options& given) { return describe(given.socket, given.spawn, given.json); }},
    {"status", "status [--json]", status_help, parse_status,
     [](const Options& given) { return status(given.socket, given.json); }},
    {"ps", "ps [--recent] [--json]", ps_help, parse_ps,
     [](const Options& given) { return ps(given.socket, given.list, given.json); }},
    {"kill", "kill RUN [SIGNAL]", kill_help, parse_kill,
     [](const Options& given) { return kill(given.socket, given.kill); }},
    {"recheck", "recheck", recheck_help, parse_recheck,
     [](const Options& given) { return recheck(given.socket); }},
    {"doctor", "doctor [--json]", doctor_help, parse_doctor,
     [](const Options& given) { return doctor(given.socket, given.json); }},
});

void add_usage(const Verb& verb, std::string& text) {
    for (std::string_view rest = verb.usage; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        text += (text.empty() ? "usage: " : "       ") + std::string("mechad-ctl [--socket PATH] ");
        text += std::string(rest.substr(0, end)) + "\n";
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
}

}  // namespace

const Verb* find_verb(std::string_view name) {
    const auto* const found = std::find_if(verbs.begin(), verbs.end(),
                                           [name](const Verb& verb) { return verb.name == name; });
    return found == verbs.end() ? nullptr : found;
}

std::string help_text() {
    std::string text;
    for (const Verb& verb : verbs) add_usage(verb, text);
    for (const Verb& verb : verbs) text += "\n" + std::string(verb.help);
    return text + std::string(tail_help);
}

std::string help_text(const Verb& verb) {
    std::string text;
    add_usage(verb, text);
    return text + "\n" + std::string(verb.help);
}

}  // namespace mechad::ctl
