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
#include <string>
#include <vector>

#include "daemon/activation.hpp"
#include "daemon/check.hpp"
#include "daemon/daemon.hpp"
#include "daemon/log.hpp"
#include "daemon/options.hpp"
#include "daemon/os/printable.hpp"
#include "daemon/os/service_manager.hpp"
#include "daemon/os/syscalls.hpp"
#include "daemon/start_environment.hpp"

namespace {

using namespace mechad;

constexpr int exit_failed = 1;
constexpr int exit_bad_config = 78;  // EX_CONFIG of sysexits.h: systemd does not restart it

constexpr std::size_t status_bytes_max = 1024;  // as much as anybody reads of a status line

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

// From the configuration to the loop's end. A start that fails is told to whoever waits for it: the
// service manager, and clients in the queue of what it passed.
class Start {
public:
    Start(const Result<Options>& options, const Environment& environment,
          const os::ServiceManager& manager)
        : options_(options), environment_(environment), manager_(manager) {}

    int run(std::vector<os::UniqueFd> passed) {
        passed_ = std::move(passed);
        if (!options_) {
            return give_up(options_.error(), passed_.empty() ? exit_failed : exit_bad_config);
        }
        if (auto one = os::check_passed(passed_); !one)
            return give_up(one.error(), exit_bad_config);
        os::HostFacts host = os::gather_host_facts();
        auto config = read_config(*options_, environment_, host);
        if (!config) return give_up(config.error(), exit_bad_config);
        if (host.uid == 0 && config->sandbox.kind != BackendKind::none) shield_device_nodes(host);
        auto places = find_places(environment_, host, options_->socket, *config);
        if (!places) return give_up(places.error(), exit_failed);
        if (auto found = find_activated(*config, *places); !found) {
            return give_up(found.error(), exit_bad_config);
        }
        auto policy = Policy::make(std::move(*config), host, places->own(), environment_);
        if (!policy) return give_up(policy.error(), exit_bad_config);
        if (options_->check) {
            return run_check(host, std::move(*policy), *std::move(places),
                             options_->json ? CheckOutput::json : CheckOutput::text);
        }
        return serve(host, std::move(*policy), *places);
    }

    int give_up(const Error& error, int code) const {
        const std::string line = text_of(error);
        (void)manager_.notify("STATUS=" + os::printable(line, status_bytes_max));
        log_event(LogEvent::start_failed, line);
        turn_away(passed_, error);
        return code;
    }

private:
    static void shield_device_nodes(os::HostFacts& host) {
        if (auto shielded = os::shield_device_nodes(); !shielded) {
            host.notes.push_back(
                "a command that runs as uid 0 can change the mode of the host's "
                "device nodes such as /dev/null: " +
                shielded.error().message());
        }
    }

    Result<void> find_activated(const Config& config, Places& places) const {
        if (passed_.empty()) return {};
        auto path = find_activated_path(
            passed_.front(), {.option = options_->socket, .config = config.daemon.socket});
        if (!path) return path.error();
        if (const auto named = value_of(environment_, "MECHAD_SOCKET");
            !named.empty() && named != *path) {
            log_warning("clients that go by $MECHAD_SOCKET look at " + named +
                        ", and the service manager passed a socket at " + *path);
        }
        places.socket = *std::move(path);
        return {};
    }

    int serve(const os::HostFacts& host, std::unique_ptr<Policy> policy, const Places& places) {
        // Before anybody can find the socket: a signal that comes from here on is kept, not fatal.
        boost::asio::io_context loop(1);
        boost::asio::signal_set stop_signals(loop, SIGTERM, SIGINT);
        const bool is_activated = !passed_.empty();
        auto socket = is_activated
                          ? ServerSocket::adopt(places.socket, os::duplicate(passed_.front()))
                          : ServerSocket::bind(places.socket);
        if (!socket) return give_up(socket.error(), exit_failed);

        auto engine = Engine::make(loop.get_executor(), host, std::move(policy), places);
        if (!engine) return give_up(engine.error(), exit_failed);
        Service service{
            .listening = socket->release_fd(), .is_activated = is_activated, .manager = &manager_};
        auto daemon =
            Daemon::make(loop.get_executor(), *std::move(engine), places, std::move(service));
        if (!daemon) return give_up(daemon.error(), exit_failed);
        passed_.clear();
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

    const Result<Options>& options_;
    const Environment& environment_;
    const os::ServiceManager& manager_;
    std::vector<os::UniqueFd> passed_;  // until the daemon serves it
};

int run_daemon(const Result<Options>& options) {
    Environment environment = take_environment();
    os::ServiceManager manager(environment);
    if (manager.is_journal_on_stderr()) log_to_journal();
    // Neither a command under none nor another program of the user may look into this process.
    (void)::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    (void)::signal(SIGPIPE, SIG_IGN);
    Start start(options, environment, manager);
    auto passed = manager.take_passed();
    if (!passed) return start.give_up(passed.error(), exit_bad_config);
    return start.run(*std::move(passed));
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what escapes is a bug and is to end the process
int main(int argc, char** argv) {
    if (auto occupied = os::occupy_closed_streams(); !occupied) return exit_failed;
    const auto options = parse_options({argv + 1, argv + argc});
    if (options && options->show_help) {
        std::cout << usage_text;
        return 0;
    }
    if (options && options->show_version) {
        std::cout << "mechad " << MECHAD_VERSION << "\n";
        return 0;
    }
    return run_daemon(options);
}
