// SPDX-License-Identifier: MIT
#include "proto/signals.hpp"

#include <algorithm>
#include <array>
#include <csignal>

namespace mechad {

namespace {

struct NamedSignal {
    int number;
    std::string_view name;
};

constexpr std::array named_signals = std::to_array<NamedSignal>({
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},       {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
    {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},     {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
    {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"},     {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
    {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"},     {SIGTERM, "SIGTERM"}, {SIGSTKFLT, "SIGSTKFLT"},
    {SIGCHLD, "SIGCHLD"}, {SIGCONT, "SIGCONT"},     {SIGSTOP, "SIGSTOP"}, {SIGTSTP, "SIGTSTP"},
    {SIGTTIN, "SIGTTIN"}, {SIGTTOU, "SIGTTOU"},     {SIGURG, "SIGURG"},   {SIGXCPU, "SIGXCPU"},
    {SIGXFSZ, "SIGXFSZ"}, {SIGVTALRM, "SIGVTALRM"}, {SIGPROF, "SIGPROF"}, {SIGWINCH, "SIGWINCH"},
    {SIGIO, "SIGIO"},     {SIGPWR, "SIGPWR"},       {SIGSYS, "SIGSYS"},
});

// Not SIGRTMIN: that macro is a call, and its value must be the same for every client.
constexpr int realtime_min = 34;
constexpr int realtime_max = 64;

}  // namespace

std::string signal_name(int number) {
    const auto* const named = std::ranges::find(named_signals, number, &NamedSignal::number);
    if (named != named_signals.end()) return std::string(named->name);
    if (number < realtime_min || number > realtime_max) return "SIG" + std::to_string(number);
    const int offset = number - realtime_min;
    return offset == 0 ? "SIGRTMIN" : "SIGRTMIN+" + std::to_string(offset);
}

std::optional<int> signal_number(std::string_view name) {
    const auto* const named = std::ranges::find(named_signals, name, &NamedSignal::name);
    if (named != named_signals.end()) return named->number;
    for (int number = realtime_min - 2; number <= realtime_max; ++number) {
        if (signal_name(number) == name) return number;
    }
    return std::nullopt;
}

}  // namespace mechad
