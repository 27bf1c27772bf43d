// SPDX-License-Identifier: MIT
#include "daemon/daemon.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "daemon/lock_file.hpp"
#include "daemon/log.hpp"
#include "daemon/os/syscalls.hpp"
#include "daemon/stream/rethrow.hpp"

namespace mechad {

namespace asio = boost::asio;
constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

namespace {

// Beyond the grace: for trees to die, results to be read, launchers to be reaped.
constexpr std::chrono::seconds stop_slack{3};
constexpr std::chrono::milliseconds stop_poll{5};

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::make(const asio::any_io_executor& executor,
                                             std::unique_ptr<Engine> engine, const Places& places,
                                             os::UniqueFd listening) {
    // Two daemons would not know of each other's runs, and what one tells of a closed run may be
    // undone by an open run of the other.
    const Error held(ErrorKind::internal, "another mechad of this user is running", {},
                     "stop it; or give this one an $XDG_CACHE_HOME of its own, and do not share "
                     "workspaces between the two");
    auto lock =
        take_lock(places.state + "/daemon.lock", held, "give mechad another $XDG_CACHE_HOME");
    if (!lock) return lock.error();

    auto ground = GroundFinder::make(engine->host(), engine->policy());
    if (!ground) return ground.error();

    std::unique_ptr<Daemon> daemon(
        new Daemon(executor, std::move(engine), places, std::move(*ground)));
    daemon->user_lock_ = std::move(*lock);
    daemon->engine_->preflight().set_on_leak(
        [runs = &daemon->runs_](const std::string& because) { runs->lower_all(because); });
    daemon->server_ =
        std::make_unique<Server>(executor, std::move(listening), daemon->session_services_);
    return daemon;
}

Daemon::Daemon(const asio::any_io_executor& executor, std::unique_ptr<Engine> engine,
               const Places& places, GroundFinder ground)
    : executor_(executor),
      engine_(std::move(engine)),
      ground_(std::move(ground)),
      runs_(engine_->policy().config().daemon.runs_max, ground_.shared()),
      status_facts_{.backend = engine_->run_services().backend,
                    .host = &engine_->host(),
                    .socket_path = places.socket},
      session_services_{.policy = &engine_->policy(),
                        .preflight = &engine_->preflight(),
                        .ground = &ground_,
                        .runs = &runs_,
                        .run_services = &engine_->run_services(),
                        .status_facts = &status_facts_} {}

asio::awaitable<void> Daemon::serve_until_stopped(asio::signal_set& signals) {
    log_info("listening on " + status_facts_.socket_path +
             ", sandbox.kind = " + std::string(engine_->run_services().backend->name));
    if (!engine_->run_services().backend->confined) {
        log_warning("sandbox.kind is none: commands run as this user, unconfined");
    }
    asio::co_spawn(executor_, engine_->preflight().recheck(), rethrow);
    asio::co_spawn(executor_, server_->accept_all(), rethrow);

    (void)co_await signals.async_wait(as_values);
    log_info("stopping");
    signals.async_wait([this](const boost::system::error_code& error, int) {
        if (!error) runs_.shut_down_now();
    });
    co_await end_runs();
    log_info("stopped");
}

asio::awaitable<void> Daemon::wait_while(std::function<bool()> condition,
                                         std::chrono::milliseconds longest) {
    const auto deadline = std::chrono::steady_clock::now() + longest;
    asio::steady_timer pause(executor_);
    while (condition() && std::chrono::steady_clock::now() < deadline) {
        pause.expires_after(stop_poll);
        co_await pause.async_wait(as_values);
    }
}

asio::awaitable<void> Daemon::end_runs() {
    server_->close();
    runs_.shut_down();
    engine_->preflight().abort();  // it removes its files
    const auto has_children = [this] { return engine_->reaper().child_count() > 0; };
    const auto is_busy = [&] {
        return runs_.active_count() > 0 || has_children() || engine_->preflight().is_probing();
    };
    co_await wait_while(is_busy, engine_->policy().config().daemon.kill_grace + stop_slack);
    // Nothing may be left of a run, nor of a launcher that started more than its box.
    co_await engine_->reaper().end_all();
}

}  // namespace mechad
