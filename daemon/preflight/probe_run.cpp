// SPDX-License-Identifier: MIT
#include "daemon/preflight/probe_run.hpp"

#include <sstream>

#include "daemon/stream/wakeup.hpp"

namespace mechad {

namespace asio = boost::asio;

namespace {

constexpr std::uint64_t answer_bytes_max = std::uint64_t{64} << 10;

// Keeps what the probe prints; has nothing to say to it.
class AnswerCollector final : public RunClient {
public:
    explicit AnswerCollector(const asio::any_io_executor& executor)
        : input_over_(executor), gone_over_(executor) {}

    asio::awaitable<bool> started(const Started&) override { co_return true; }
    asio::awaitable<bool> output(OutputStream stream, std::string_view bytes) override {
        if (stream == OutputStream::out) text_.append(bytes);
        co_return true;
    }
    asio::awaitable<bool> output_ended(OutputStream) override { co_return true; }
    asio::awaitable<bool> changed(const Changed&) override { co_return true; }
    asio::awaitable<ClientInput> next_input() override {
        while (!is_over_) co_await input_over_.wait();
        co_return Gone{};
    }
    asio::awaitable<void> wait_gone() override {
        while (!is_over_) co_await gone_over_.wait();
    }
    void stop_input() override {
        is_over_ = true;
        input_over_.notify();
        gone_over_.notify();
    }

    bool is_gone() const override { return false; }

    ProbeAnswers answers() const {
        ProbeAnswers answers;
        std::istringstream lines(text_);
        for (std::string line; std::getline(lines, line);) {
            const auto space = line.find(' ');
            if (space == std::string::npos) continue;
            answers[line.substr(0, space)] = line.substr(space + 1);
        }
        return answers;
    }

private:
    Wakeup input_over_;
    Wakeup gone_over_;
    std::string text_;
    bool is_over_ = false;
};

std::string nonce_check(const ProbeTargets& t) { return "read:" + t.scratch->nonce_path(); }
std::string canary_check(const ProbeTargets& t) { return "read:" + t.scratch->canary_path(); }
std::string tcp_check(const ProbeTargets& t) { return "tcp:127.0.0.1:" + t.tcp_port; }
// Relative to the workspace, where the probe runs.
std::string unix_check() { return std::string("unix:") + Scratch::socket_name; }

SpawnParams probe_request(const ProbeTargets& targets, NetworkProbe network) {
    SpawnParams request;
    request.argv = {targets.scratch->probe(), targets.token, nonce_check(targets),
                    tcp_check(targets), unix_check()};
    if (!targets.scratch->canary_path().empty()) request.argv->push_back(canary_check(targets));
    request.workspace = targets.scratch->workspace();
    request.network = network == NetworkProbe::open;
    request.timeout = targets.timeout;
    request.output_limit_bytes = answer_bytes_max;
    request.label = "preflight";
    return request;
}

std::string answer_to(const ProbeAnswers& answers, const std::string& check) {
    const auto found = answers.find(check);
    return found == answers.end() ? "no answer" : found->second;
}

bool is_ok(std::string_view answer) { return answer == "ok" || answer.starts_with("ok "); }
bool is_refused(std::string_view answer) { return answer.starts_with("errno "); }

// A denial is proved when the probe was refused and nothing arrived outside. A probe that claims
// success without effect, or gave no answer, proves nothing.
ProbeReport judge_denial(std::string name, const std::string& answer, bool is_breached) {
    const auto verdict = is_breached          ? ProbeVerdict::leak
                         : is_refused(answer) ? ProbeVerdict::proved
                                              : ProbeVerdict::broken;
    return {std::move(name), verdict, answer};
}

ProbeReport judge_control(std::string name, const std::string& answer, bool has_effect) {
    const bool is_good = is_ok(answer) && has_effect;
    return {std::move(name), is_good ? ProbeVerdict::proved : ProbeVerdict::broken, answer};
}

bool has_bytes(const std::string& answer, const std::string& bytes) {
    return answer.find(bytes) != std::string::npos;
}

}  // namespace

asio::awaitable<Result<ProbeAnswers>> run_probe(const RunServices& services, Policy& policy,
                                                const ProbeTargets& targets, NetworkProbe network) {
    const auto admission = policy.admit_probe(probe_request(targets, network));
    if (!admission) co_return admission.error();
    ActiveRun entry;
    AnswerCollector collector(services.executor);
    Run run(services, *admission, collector, entry);
    const auto report = co_await run.execute(Proofs{});
    if (!report) co_return report.error();
    if (report->reason != EndReason::exited || report->exit_code != 0) {
        co_return Error(ErrorKind::preflight_failed,
                        "mechad-probe did not end by itself (exit code " +
                            std::to_string(report->exit_code) + ", signal " +
                            std::to_string(report->exit_signal) + ")");
    }
    co_return collector.answers();
}

std::vector<ProbeReport> judge(const ProbeAnswers& answers, const ProbeTargets& targets,
                               NetworkProbe network, bool is_confined, bool tcp_heard,
                               bool unix_heard) {
    const std::string suffix = network == NetworkProbe::closed ? "_closed" : "_open";
    const std::string nonce = answer_to(answers, nonce_check(targets));
    std::vector<ProbeReport> reports;
    reports.push_back(judge_control("workspace_nonce" + suffix, nonce,
                                    has_bytes(nonce, targets.scratch->nonce())));
    if (!is_confined) return reports;

    if (!targets.scratch->canary_path().empty()) {
        const std::string canary = answer_to(answers, canary_check(targets));
        reports.push_back(
            judge_denial("home_canary" + suffix, canary,
                         is_ok(canary) || has_bytes(canary, targets.scratch->canary())));
    }
    const std::string tcp = answer_to(answers, tcp_check(targets));
    reports.push_back(network == NetworkProbe::closed
                          ? judge_denial("tcp_listener" + suffix, tcp, tcp_heard)
                          : judge_control("tcp_listener" + suffix, tcp, tcp_heard));
    reports.push_back(
        judge_denial("unix_listener" + suffix, answer_to(answers, unix_check()), unix_heard));
    return reports;
}

}  // namespace mechad
