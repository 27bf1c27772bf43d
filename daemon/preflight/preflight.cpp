// SPDX-License-Identifier: MIT
#include "daemon/preflight/preflight.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "daemon/log.hpp"
#include "daemon/preflight/diagnosis.hpp"
#include "daemon/preflight/home_mounts.hpp"
#include "daemon/preflight/launcher_check.hpp"
#include "daemon/preflight/probe_run.hpp"
#include "daemon/stream/off_loop.hpp"

namespace mechad {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds probe_timeout{10};
constexpr std::chrono::seconds file_deadline{10};
// One may be an accident of a launcher that is being replaced.
constexpr int unproved_boxes_max = 3;

constexpr const char* leak_remedy =
    "this sandbox does not confine: run nothing with it. mechad-ctl status lists each probe; see "
    "what changed the launcher, the kernel or the mounts, and reinstall bubblewrap";
constexpr const char* broken_remedy =
    "mechad-ctl status lists each probe; find out what keeps the probe from what every command can";
// Ends every remedy.
constexpr std::string_view then_recheck = "\nThen: mechad-ctl recheck";

ProbeReport report_of(std::string name, ProbeVerdict verdict, std::string detail) {
    return {std::move(name), verdict, std::move(detail)};
}

std::int64_t unix_seconds_now() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

// The most telling of what went wrong: a leak before what is broken, else in order.
const ProbeReport* find_worst(const std::vector<ProbeReport>& probes) {
    const ProbeReport* worst = nullptr;
    for (const auto& probe : probes) {
        if (probe.verdict == ProbeVerdict::proved) continue;
        const bool is_worse = worst == nullptr || (probe.verdict == ProbeVerdict::leak &&
                                                   worst->verdict != ProbeVerdict::leak);
        if (is_worse) worst = &probe;
    }
    return worst;
}

}  // namespace

Preflight::Preflight(const RunServices& services, Policy& policy, os::HostFacts& host,
                     PreflightPlaces places)
    : services_(services),
      policy_(policy),
      host_(host),
      places_(std::move(places)),
      finished_(services.executor, asio::steady_timer::time_point::max()) {}

asio::awaitable<void> Preflight::wait_finished() {
    while (report_.state == PreflightState::running && !is_aborted_) {
        co_await finished_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
}

asio::awaitable<void> Preflight::recheck() {
    if (is_probing_) {
        while (is_probing_) {
            co_await finished_.async_wait(asio::as_tuple(asio::use_awaitable));
        }
        co_return;
    }
    is_probing_ = true;
    Verdict verdict;
    co_await examine(verdict);
    is_probing_ = false;
    if (!is_aborted_) adopt(std::move(verdict));
    finished_.cancel();
}

// Whatever goes wrong becomes a probe that is broken: a preflight that never ends would let every
// request wait for ever.
asio::awaitable<void> Preflight::examine(Verdict& verdict) {
    verdict.host = host_;
    Result<void> probed;
    try {
        probed = co_await probe_boxes(verdict);
    } catch (const std::exception& failure) {
        probed = Error(ErrorKind::internal, failure.what());
    }
    if (probed) co_return;
    // A box without them was made, and would have run the command.
    const auto worse =
        probed.error().step() == Run::proof_step ? ProbeVerdict::leak : ProbeVerdict::broken;
    const std::string name = worse == ProbeVerdict::leak ? "namespaces" : "setup";
    std::string detail = probed.error().message();
    verdict.remedy = probed.error().hint();
    if (services_.backend == &bwrap_backend && probed.error().step() == "launch") {
        auto diagnosis = diagnose_bwrap(detail, verdict.host, os::gather_namespace_facts());
        detail = std::move(diagnosis.reason);
        verdict.remedy = std::move(diagnosis.remedy);
    }
    verdict.probes.push_back(report_of(name, worse, std::move(detail)));
}

Error Preflight::files_unusable(const Error& cause) const {
    if (cause.kind() != ErrorKind::overloaded) return cause;
    return Error(ErrorKind::preflight_failed,
                 "the files of preflight (in a home, " + places_.ground.state +
                     ", directories for temporary files) cannot be used: " + cause.message(),
                 {}, "look for a file system that does not answer, and for limits of this user");
}

asio::awaitable<Result<std::shared_ptr<Scratch>>> Preflight::plant() const {
    using Planted = Result<std::shared_ptr<Scratch>>;
    const auto work = [ground = places_.ground, probe = places_.probe_binary]() -> Planted {
        Scratch::sweep(ground);
        auto scratch = Scratch::plant(ground, probe);
        if (!scratch) return scratch.error();
        return std::make_shared<Scratch>(*std::move(scratch));
    };
    auto planted = co_await off_loop(services_.executor, work, file_deadline);
    if (!planted) co_return files_unusable(planted.error());
    co_return std::move(planted);
}

asio::awaitable<Result<void>> Preflight::check_launcher(os::HostFacts& host) const {
    if (services_.backend != &bwrap_backend) co_return Result<void>();
    co_await check_bwrap(services_.executor, *services_.reaper, host);
    if (!host.bwrap.empty()) co_return Result<void>();
    co_return Error(ErrorKind::preflight_failed, host.bwrap_problem, {},
                    "sudo apt-get install bubblewrap (0.8.0-2+deb12u1, 0.10 or later, not setuid)");
}

asio::awaitable<Result<void>> Preflight::probe_boxes(Verdict& verdict) {
    const auto checked = co_await check_launcher(verdict.host);
    if (!checked) co_return checked.error();
    auto scratch = co_await plant();
    if (!scratch) co_return scratch.error();

    Surroundings surroundings(services_.executor, *services_.reaper);
    surroundings_ = &surroundings;
    Result<void> probed;
    try {
        probed = co_await probe_among(surroundings, *scratch, verdict);
    } catch (const std::exception& failure) {
        probed = Error(ErrorKind::internal, failure.what());
    }
    surroundings_ = nullptr;
    probe_run_ = nullptr;
    co_await surroundings.close();
    auto remove = [held = *std::move(scratch)]() mutable {
        held.reset();
        return Result<void>();
    };
    (void)co_await off_loop(services_.executor, std::move(remove), file_deadline);
    co_return probed;
}

asio::awaitable<Result<void>> Preflight::probe_among(Surroundings& surroundings,
                                                     std::shared_ptr<const Scratch> scratch,
                                                     Verdict& verdict) {
    Result<void> probed = surroundings.set_up(*scratch, places_.probe_binary);
    if (probed && services_.backend->confined) {
        probed = co_await probe_box(verdict, scratch, surroundings, NetworkProbe::closed);
    }
    // What made no box the first time makes none the second time either, after as long a wait.
    if (probed) probed = co_await probe_box(verdict, scratch, surroundings, NetworkProbe::open);
    co_return probed;
}

Result<ProbeTargets> Preflight::make_targets(const Scratch& scratch,
                                             const Surroundings& surroundings) const {
    ProbeTargets targets;
    scratch.add_to(targets);
    surroundings.add_to(targets);
    targets.own_socket = places_.own_socket;
    const auto added =
        add_mounts(places_.ground.homes, scratch.workspace(), policy_.extra_binds(), targets);
    if (!added) return added.error();
    return targets;
}

asio::awaitable<Result<void>> Preflight::probe_box(Verdict& verdict,
                                                   std::shared_ptr<const Scratch> scratch,
                                                   Surroundings& surroundings,
                                                   NetworkProbe network) {
    const auto targets = make_targets(*scratch, surroundings);
    if (!targets) co_return targets.error();
    const auto battery = make_battery(*targets, network, services_.backend->confined);
    RunServices services = services_;
    services.host = &verdict.host;
    const ProbeOrder order{.program = scratch->probe(),
                           .workspace = scratch->workspace(),
                           .token = surroundings.token(),
                           .env = surroundings.control_env(),
                           .network = network,
                           .timeout = probe_timeout};
    is_own_socket_reached_ = false;
    ActiveRun entry;
    probe_run_ = &entry;
    if (is_aborted_) co_return Error(ErrorKind::shutting_down, "mechad is stopping");
    const auto answers = co_await run_probe(services, policy_, order, battery, entry);
    probe_run_ = nullptr;
    if (!answers) co_return answers.error();

    Sightings seen;
    const auto looked = co_await surroundings.look(seen);
    if (!looked) co_return looked.error();
    const auto look_at_files = [scratch, seen, token = surroundings.token()]() {
        Sightings all = seen;
        scratch->look(token, all);
        scratch->clear_marks();
        return Result<Sightings>(all);
    };
    auto all_seen = co_await off_loop(services_.executor, look_at_files, file_deadline);
    if (!all_seen) co_return files_unusable(all_seen.error());
    all_seen->own_socket_reached = is_own_socket_reached_;
    if (services_.backend->confined) {
        verdict.probes.push_back(report_of("namespaces" + std::string(suffix_of(network)),
                                           ProbeVerdict::proved, "all of the box's own"));
    }
    for (auto& report : judge(battery, *answers, *all_seen)) {
        verdict.probes.push_back(std::move(report));
    }
    co_return Result<void>();
}

void Preflight::adopt(Verdict verdict) {
    report_ = {};
    report_.finished_unix_s = unix_seconds_now();
    report_.probes = std::move(verdict.probes);
    host_ = std::move(verdict.host);
    unproved_boxes_ = 0;
    if (const ProbeReport* const worst = find_worst(report_.probes)) {
        const bool is_leak = worst->verdict == ProbeVerdict::leak;
        const std::string what = is_leak ? "leak" : "broken";
        const std::string known_remedy = is_leak ? leak_remedy : broken_remedy;
        if (is_leak && on_leak_) {
            on_leak_("the sandbox turned out to leak when it was proved again, by the probe " +
                     worst->name);
        }
        return fail(worst->name + " (" + what + "): " + worst->detail,
                    verdict.remedy.empty() ? known_remedy : verdict.remedy);
    }
    report_.state = PreflightState::passed;
    proofs_ = make_proofs(report_.probes);
    const std::string backend(services_.backend->name);
    log_event(LogEvent::preflight_passed, "preflight passed: " + backend, {.backend = backend});
    if (on_verdict_) on_verdict_();
}

void Preflight::fail(std::string reason, std::string remedy) {
    report_.state = PreflightState::failed;
    report_.reason = std::move(reason);
    report_.remedy = std::move(remedy.append(then_recheck));
    proofs_ = {};
    log_event(LogEvent::preflight_failed, "preflight failed, no run is accepted: " + report_.reason,
              {.backend = std::string(services_.backend->name)});
    if (on_verdict_) on_verdict_();
}

void Preflight::note_box(BoxProof proof, const std::string& why) {
    if (proof == BoxProof::shown) unproved_boxes_ = 0;
    if (proof != BoxProof::missing) return;
    if (++unproved_boxes_ < unproved_boxes_max || report_.state != PreflightState::passed) return;
    report_.probes.push_back(report_of("namespaces", ProbeVerdict::leak, why));
    fail("namespaces (leak): " + std::to_string(unproved_boxes_) +
             " boxes in a row did not prove themselves, and their commands were not executed: " +
             why,
         "find out what replaced or changed " + host_.bwrap);
}

std::optional<Error> Preflight::refusal() const {
    if (is_aborted_) return Error(ErrorKind::shutting_down, "mechad is stopping");
    if (report_.state == PreflightState::passed) return std::nullopt;
    return Error(
        ErrorKind::preflight_failed,
        "sandbox preflight failed, refusing to run anything unconfined (" + report_.reason + ")",
        {}, report_.remedy);
}

void Preflight::note_received(std::string_view bytes) {
    if (surroundings_ == nullptr) return;
    if (bytes.find(surroundings_->token()) != std::string_view::npos) is_own_socket_reached_ = true;
}

void Preflight::abort() {
    is_aborted_ = true;
    finished_.cancel();
    if (probe_run_ != nullptr && probe_run_->stop_now) probe_run_->stop_now();
}

}  // namespace mechad
