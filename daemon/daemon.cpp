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
// Of a stop, beyond the grace, with all that is bounded elsewhere.
constexpr std::chrono::seconds stop_bound{15};

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::make(const asio::any_io_executor& executor,
                                             std::unique_ptr<Engine> engine, const Places& places,
                                             Service service) {
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
        new Daemon(executor, std::move(engine), places, std::move(*ground), service));
    daemon->user_lock_ = std::move(*lock);
    daemon->engine_->preflight().set_on_leak(
        [runs = &daemon->runs_](const std::string& because) { runs->lower_all(because); });
    const auto on_change = [report = &daemon->service_report_] { report->changed(); };
    daemon->engine_->preflight().set_on_verdict(on_change);
    daemon->runs_.set_on_count(on_change);
    daemon->server_ =
        std::make_unique<Server>(executor, std::move(service.listening), daemon->session_services_);
    return daemon;
}

Daemon::Daemon(const asio::any_io_executor& executor, std::unique_ptr<Engine> engine,
               const Places& places, GroundFinder ground, const Service& service)
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
                        .status_facts = &status_facts_},
      service_report_(executor, *service.manager,
                      [this] {
                          return service_status(*engine_->run_services().backend,
                                                engine_->preflight().report(),
                                                runs_.active_count());
                      }),
      stop_(executor),
      is_activated_(service.is_activated) {}

asio::awaitable<void> Daemon::serve_until_stopped(asio::signal_set& signals) {
    say_start();
    const auto on_signal = [this](const boost::system::error_code& error, int) {
        if (error) return;
        is_stopping_ = true;
        stop_.notify();
    };
    signals.async_wait(on_signal);
    asio::co_spawn(executor_, engine_->preflight().recheck(), rethrow);
    asio::co_spawn(executor_, server_->accept_all(), rethrow);
    service_report_.ready();
    const auto idle_exit = engine_->policy().config().daemon.idle_exit;
    if (is_activated_ && idle_exit.count() > 0) {
        asio::co_spawn(executor_, watch_idle(idle_exit), rethrow);
    }

    while (!is_stopping_) co_await stop_.wait();
    log_event(LogEvent::daemon_stopping, "stopping");
    service_report_.stopping(engine_->policy().config().daemon.kill_grace + stop_bound);
    signals.async_wait([this](const boost::system::error_code& error, int) {
        if (!error) runs_.shut_down_now();
    });
    co_await end_runs();
    log_event(LogEvent::daemon_stopped, "stopped");
}

void Daemon::say_start() {
    const Backend& backend = *engine_->run_services().backend;
    const std::string name(backend.name);
    log_event(LogEvent::daemon_started,
              "listening on " + status_facts_.socket_path + ", sandbox.kind = " + name,
              {.backend = name});
    if (!backend.confined) {
        log_warning("sandbox.kind is none: commands run as this user, unconfined");
    }
    if (!is_activated_ && engine_->policy().config().daemon.idle_exit.count() > 0) {
        log_warning(
            "daemon.idle_exit_s is left alone: nobody would start this daemon again, as its socket "
            "was not passed by a service manager");
    }
}

// A run lives no longer than its connection: without one there is no run either.
asio::awaitable<void> Daemon::watch_idle(std::chrono::seconds idle_exit) {
    asio::steady_timer timer(executor_);
    while (!is_stopping_) {
        const auto now = std::chrono::steady_clock::now();
        const auto idle_since = engine_->preflight().is_probing() ? now : server_->idle_since();
        const auto due = idle_since.value_or(now) + idle_exit;
        if (due > now) {
            timer.expires_at(due);
            co_await timer.async_wait(as_values);
            continue;
        }
        const bool is_paused = co_await server_->pause_if_idle();
        if (!is_paused || is_stopping_) continue;
        log_event(LogEvent::daemon_idle,
                  "idle for " + std::to_string(idle_exit.count()) + " s (daemon.idle_exit_s)");
        is_stopping_ = true;
        stop_.notify();
    }
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
