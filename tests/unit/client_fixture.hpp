// SPDX-License-Identifier: MIT
// Both ends of a connection in one test, which plays the daemon by hand.
#pragma once

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <mechad/error.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "client/run_channel.hpp"
#include "daemon/os/unique_fd.hpp"

namespace mechad {

inline std::pair<os::UniqueFd, os::UniqueFd> make_connection() {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    return {os::UniqueFd(fds[0]), os::UniqueFd(fds[1])};
}

inline void say(const os::UniqueFd& end, std::string_view bytes) {
    REQUIRE(::send(end.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
}

// All that has arrived.
inline std::string hear(const os::UniqueFd& end) {
    std::string heard;
    char buffer[65536];
    for (ssize_t got = 1; got > 0;) {
        got = ::recv(end.get(), buffer, sizeof buffer, 0);
        if (got > 0) heard.append(buffer, static_cast<std::size_t>(got));
    }
    return heard;
}

inline constexpr std::string_view started_line =
    R"({"jsonrpc":"2.0","method":"started","params":{"run":"r1","pid":7,"backend":"bwrap",)"
    R"("confined":true,"network":false,"claims":{"home":"hidden"},"capabilities":)"
    R"({"egress":"none","can_reach_network":false,"reaches_beyond_workspace":false},"notes":[]}})"
    "\n";
inline constexpr std::string_view output_line =
    R"({"jsonrpc":"2.0","method":"output","params":{"stream":"stderr","text":"hey"}})"
    "\n";
inline constexpr std::string_view result_line =
    R"({"jsonrpc":"2.0","id":1,"result":{"exit":{"code":3},"reason":"exited"}})"
    "\n";
inline constexpr std::string_view refusal_line =
    R"({"jsonrpc":"2.0","id":1,"error":{"code":-32012,"message":"No. Nothing was executed.",)"
    R"("data":{"kind":"policy_denied","field":"network","hint":"ask","executed":false}}})"
    "\n";

// A run, and the daemon's end of its connection.
struct PlayedRun {
    explicit PlayedRun(SpawnParams spawn = {}, std::optional<std::string> input = {})
        : PlayedRun(make_connection(), std::move(spawn), std::move(input)) {}

    // What the client does when its socket is ready.
    void play(std::string_view bytes) {
        say(daemon, bytes);
        run.exchange();
    }

    os::UniqueFd daemon;
    client::RunChannel run;

private:
    PlayedRun(std::pair<os::UniqueFd, os::UniqueFd> ends, SpawnParams spawn,
              std::optional<std::string> input)
        : daemon(std::move(ends.second)), run(std::move(ends.first), spawn, std::move(input)) {}
};

// The Error that `call` throws.
template <class Call>
client::Error error_of(Call call) {
    try {
        call();
    } catch (const client::Error& error) {
        return error;
    }
    FAIL("no Error was thrown");
    return {client::ErrorKind::unrecognized, client::Executed::no, ""};
}

}  // namespace mechad
