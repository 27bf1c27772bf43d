// SPDX-License-Identifier: MIT
// Proves the configured sandbox over the same path that a request takes: controls that must
// succeed beside denials that must fail. Until it passed nothing runs, and what it did not prove
// is not claimed.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/claims.hpp"
#include "daemon/policy.hpp"
#include "daemon/preflight/battery.hpp"
#include "daemon/preflight/scratch.hpp"
#include "daemon/preflight/surroundings.hpp"
#include "daemon/run.hpp"
#include "proto/messages.hpp"

namespace mechad {

struct PreflightPlaces {
    std::string probe_binary;  // mechad-probe, a static program
    ScratchGround ground;
    std::string own_socket;  // mechad's; empty: none is open
};

class Preflight {
public:
    // All outlive this object. `host` is rewritten, what concerns the launcher, by each verdict.
    Preflight(const RunServices& services, Policy& policy, os::HostFacts& host,
              PreflightPlaces places);

    // Probes the sandbox and takes the verdict over. While one is under way a second call only
    // waits for its end. The old verdict stands until the new one is there; the first time there
    // is none, and requests wait.
    boost::asio::awaitable<void> recheck();

    // Returns once there is a verdict, or none will come.
    boost::asio::awaitable<void> wait_finished();

    const PreflightReport& report() const { return report_; }
    // Why nothing may run; nullopt once proved. After abort(): that mechad is stopping.
    std::optional<Error> refusal() const;
    // What was proved; nothing before the first verdict and after a bad one.
    const Proofs& proofs() const { return proofs_; }

    // What came of making one run's box. One without its namespaces was refused; when that goes on,
    // the verdict is no longer true and nothing is accepted any more. A box that was not made says
    // nothing either way.
    void note_box(BoxProof proof, const std::string& why);

    // What came to mechad's own socket, from whomever: the probe must not get there.
    void note_received(std::string_view bytes);

    // Called with the reason when a verdict is a leak: what runs already may leak as well.
    void set_on_leak(std::function<void(const std::string&)> on_leak) {
        on_leak_ = std::move(on_leak);
    }

    // Called after each verdict.
    void set_on_verdict(std::function<void()> on_verdict) { on_verdict_ = std::move(on_verdict); }

    bool is_probing() const { return is_probing_; }
    // Makes a recheck end soon. Its verdict would be one on a probe that was broken off: there is
    // none any more.
    void abort();
    bool is_aborted() const { return is_aborted_; }

private:
    struct Verdict {
        std::vector<ProbeReport> probes;
        std::string remedy;  // of what stopped the probing, where something is known
        os::HostFacts host;
    };
    // The steps, from the outermost in.
    boost::asio::awaitable<void> examine(Verdict& verdict);
    boost::asio::awaitable<Result<void>> probe_boxes(Verdict& verdict);
    boost::asio::awaitable<Result<void>> check_launcher(os::HostFacts& host) const;
    boost::asio::awaitable<Result<std::shared_ptr<Scratch>>> plant() const;
    boost::asio::awaitable<Result<void>> probe_among(Surroundings& surroundings,
                                                     std::shared_ptr<const Scratch> scratch,
                                                     Verdict& verdict);
    boost::asio::awaitable<Result<void>> probe_box(Verdict& verdict,
                                                   std::shared_ptr<const Scratch> scratch,
                                                   Surroundings& surroundings,
                                                   NetworkProbe network);
    Result<ProbeTargets> make_targets(const Scratch& scratch,
                                      const Surroundings& surroundings) const;
    Error files_unusable(const Error& cause) const;
    void adopt(Verdict verdict);
    void fail(std::string reason, std::string remedy);

    const RunServices& services_;
    Policy& policy_;
    os::HostFacts& host_;
    PreflightPlaces places_;
    boost::asio::steady_timer finished_;  // for any number of waiters
    PreflightReport report_;
    Proofs proofs_;
    std::function<void(const std::string&)> on_leak_;
    std::function<void()> on_verdict_;
    ActiveRun* probe_run_ = nullptr;  // the probe's run that is under way
    const Surroundings* surroundings_ = nullptr;
    bool is_probing_ = false;
    bool is_aborted_ = false;
    bool is_own_socket_reached_ = false;
    int unproved_boxes_ = 0;  // in a row
};

}  // namespace mechad
