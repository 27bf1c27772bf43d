// SPDX-License-Identifier: MIT
#include "daemon/daemon.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <filesystem>

#include "daemon/log.hpp"
#include "daemon/os/seccomp.hpp"
#include "daemon/os/syscalls.hpp"
#include "daemon/stream/rethrow.hpp"

namespace mechad {

namespace asio = boost::asio;
constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

namespace {

// Beyond the grace: for trees to die, results to be read, launchers to be reaped.
constexpr std::chrono::seconds stop_slack{3};
constexpr std::chrono::milliseconds stop_poll{5};

// The daemon's own namespaces, to compare those of boxes with.
init_wire::Ready find_namespaces() {
    init_wire::Ready ready{};
    for (std::uint32_t i = 0; i < init_wire::ns_count; ++i) {
        const std::string path = std::string("/proc/self/ns/") + init_wire::namespace_names[i];
        struct stat found {};
        if (::stat(path.c_str(), &found) == 0) ready.namespaces[i] = found.st_ino;
    }
    return ready;
}

SharedGround find_shared_ground(const os::HostFacts& host, const Policy& policy) {
    SharedGround ground;
    for (const auto& entry : host.system) {
        struct stat found {};
        if (::stat(entry.path.c_str(), &found) == 0) {
            ground.readable.push_back({found.st_dev, found.st_ino});
        }
    }
    for (const auto& bind : policy.extra_binds()) {
        ground.readable.push_back(bind.place.id);
        ground.has_writable = ground.has_writable || bind.access == Access::read_write;
    }
    return ground;
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::make(const asio::any_io_executor& executor,
                                             const os::HostFacts& host,
                                             std::unique_ptr<Policy> policy, const Places& places,
                                             os::UniqueFd listening) {
    auto init_binary = os::open_file(places.init_binary, O_PATH);
    if (!init_binary) return init_binary.error();
    const Backend* backend = find_backend(policy->config().sandbox.kind);
    if (backend->confined && !os::leave_session_keyring()) {
        log_warning("cannot leave the session keyring: keyrings are not available here");
    }
    auto filter = os::make_filter();
    if (!filter) return filter.error();
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(places.state).parent_path(), ignored);
    if (auto made = os::make_private_directory(places.state); !made) return made.error();
    // Two daemons would not know of each other's runs, and what one tells of a closed run may be
    // undone by an open run of the other.
    auto lock = os::open_file(places.state + "/daemon.lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (!lock) return lock.error();
    if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
        return Error(ErrorKind::internal, "another mechad of this user is running", {},
                     "stop it; or give this one an $XDG_CACHE_HOME of its own, and do not share "
                     "workspaces between the two");
    }

    std::unique_ptr<Daemon> daemon(
        new Daemon(executor, host, std::move(policy), places, std::move(*init_binary)));
    daemon->user_lock_ = std::move(*lock);
    daemon->run_services_.filter = std::move(*filter);
    daemon->server_ =
        std::make_unique<Server>(executor, std::move(listening), daemon->session_services_);
    return daemon;
}

Daemon::Daemon(const asio::any_io_executor& executor, const os::HostFacts& host,
               std::unique_ptr<Policy> policy, const Places& places, os::UniqueFd init_binary)
    : executor_(executor),
      host_(host),
      policy_(std::move(policy)),
      reaper_(executor),
      launcher_(executor, reaper_, std::move(init_binary)),
      run_services_{.executor = executor,
                    .backend = find_backend(policy_->config().sandbox.kind),
                    .host = &host_,
                    .launcher = &launcher_,
                    .reaper = &reaper_,
                    .filter = {},
                    .command_file_limits = os::raise_file_limit(),
                    .own_namespaces = find_namespaces(),
                    .kill_grace = policy_->config().daemon.kill_grace},
      runs_(policy_->config().daemon.runs_max, find_shared_ground(host_, *policy_)),
      preflight_(run_services_, *policy_, {places.probe_binary, places.state, host_.home}),
      status_facts_{.backend = run_services_.backend, .host = &host_, .socket_path = places.socket},
      session_services_{.policy = policy_.get(),
                        .preflight = &preflight_,
                        .runs = &runs_,
                        .run_services = &run_services_,
                        .status_facts = &status_facts_} {}

asio::awaitable<void> Daemon::serve_until_stopped(asio::signal_set& signals) {
    log_info("listening on " + status_facts_.socket_path +
             ", sandbox.kind = " + std::string(run_services_.backend->name));
    if (!run_services_.backend->confined) {
        log_warning("sandbox.kind is none: commands run as this user, unconfined");
    }
    asio::co_spawn(executor_, preflight_.execute(), rethrow);
    asio::co_spawn(executor_, server_->accept_all(), rethrow);

    (void)co_await signals.async_wait(as_values);
    log_info("stopping");
    signals.async_wait([this](const boost::system::error_code& error, int) {
        if (!error) runs_.shut_down_now();
    });
    co_await end_runs();
    log_info("stopped");
}

asio::awaitable<void> Daemon::end_runs() {
    server_->close();
    runs_.shut_down();
    const auto deadline =
        std::chrono::steady_clock::now() + policy_->config().daemon.kill_grace + stop_slack;
    asio::steady_timer pause(executor_);
    const auto is_busy = [this] {
        return runs_.active_count() > 0 || reaper_.child_count() > 0 ||
               preflight_.report().state == PreflightState::running;  // it removes its files
    };
    while (is_busy() && std::chrono::steady_clock::now() < deadline) {
        pause.expires_after(stop_poll);
        co_await pause.async_wait(as_values);
    }
    preflight_.remove_files();
    // Nothing may be left of a run. Under none this frees what init has not killed yet; there is
    // no time to wait for it any more.
    reaper_.kill_all();
}

}  // namespace mechad
