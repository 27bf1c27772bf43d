// SPDX-License-Identifier: MIT
// The start of mechad, top to bottom: options, environment, config, policy, socket, loop.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "daemon/check.hpp"
#include "daemon/daemon.hpp"
#include "daemon/log.hpp"
#include "daemon/options.hpp"
#include "daemon/os/syscalls.hpp"
#include "daemon/start_environment.hpp"

namespace {

using namespace mechad;

constexpr int exit_failed = 1;
constexpr int exit_bad_config = 78;  // EX_CONFIG of sysexits.h: systemd does not restart it

int fail(const Error& error, int code) {
    log_error(error.message() + (error.hint().empty() ? "" : " (" + error.hint() + ")"));
    return code;
}

Result<Config> read_config(const Options& options, const Environment& environment,
                           const os::HostFacts& host) {
    ConfigSearch search{.explicit_path = options.config,
                        .xdg_config_home = value_of(environment, "XDG_CONFIG_HOME"),
                        .home = host.home};
    const std::string named = value_of(environment, "MECHAD_CONFIG");
    if (!search.explicit_path && !named.empty()) search.explicit_path = named;
    const auto path = find_config(search);
    if (!path) return path.error();
    auto config = *path ? load_config(**path) : parse_config("", "");
    if (config && options.kind) {
        const auto kind = find_kind(*options.kind);
        if (!kind) return Error(kind.error().kind(), "kind " + kind.error().message());
        config->sandbox.kind = *kind;
    }
    return config;
}

int run_daemon(const Options& options) {
    const Environment environment = take_environment();
    // Neither a command under none nor another program of the user may look into this process.
    (void)::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    (void)::signal(SIGPIPE, SIG_IGN);

    os::HostFacts host = os::gather_host_facts();
    auto config = read_config(options, environment, host);
    if (!config) return fail(config.error(), exit_bad_config);
    if (host.uid == 0 && config->sandbox.kind != BackendKind::none) {
        if (auto shielded = os::shield_device_nodes(); !shielded) {
            host.notes.push_back(
                "a command that runs as uid 0 can change the mode of the host's "
                "device nodes such as /dev/null: " +
                shielded.error().message());
        }
    }
    auto places = find_places(environment, host, options.socket, *config);
    if (!places) return fail(places.error(), exit_failed);
    auto policy = Policy::make(std::move(*config), host, places->own(), environment);
    if (!policy) return fail(policy.error(), exit_bad_config);
    if (options.check) {
        return run_check(host, std::move(*policy), *std::move(places),
                         options.json ? CheckOutput::json : CheckOutput::text);
    }
    // Before anybody can find the socket: a signal that comes from here on is kept, not fatal.
    boost::asio::io_context loop(1);
    boost::asio::signal_set stop_signals(loop, SIGTERM, SIGINT);
    auto socket = ServerSocket::bind(places->socket);
    if (!socket) return fail(socket.error(), exit_failed);

    auto engine = Engine::make(loop.get_executor(), host, std::move(*policy), *places);
    if (!engine) return fail(engine.error(), exit_failed);
    auto daemon =
        Daemon::make(loop.get_executor(), *std::move(engine), *places, socket->release_fd());
    if (!daemon) return fail(daemon.error(), exit_failed);
    boost::asio::co_spawn(loop, (*daemon)->serve_until_stopped(stop_signals),
                          [&loop](const std::exception_ptr& failure) {
                              if (failure) std::rethrow_exception(failure);
                              loop.stop();
                          });
    loop.run();
    socket->remove();
    // Sessions that wait for a next call are suspended inside the loop and refer to the daemon:
    // they go with the process, not one by one.
    std::_Exit(0);
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what escapes is a bug and is to end the process
int main(int argc, char** argv) {
    const auto options = parse_options({argv + 1, argv + argc});
    if (!options) return fail(options.error(), exit_failed);
    if (options->show_help) {
        std::cout << usage_text;
        return 0;
    }
    if (options->show_version) {
        std::cout << "mechad " << MECHAD_VERSION << "\n";
        return 0;
    }
    return run_daemon(*options);
}
