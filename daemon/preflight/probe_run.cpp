// SPDX-License-Identifier: MIT
#include "daemon/preflight/probe_run.hpp"

#include <sstream>

#include "daemon/stream/wakeup.hpp"

namespace mechad {

namespace asio = boost::asio;

namespace {

constexpr std::uint64_t answer_bytes_max = std::uint64_t{256} << 10;

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

SpawnParams probe_request(const ProbeOrder& order, const std::vector<Probe>& battery) {
    SpawnParams request;
    request.argv = {order.program, "-", order.env.first};
    // Not on the command line, which every user of the machine can read.
    std::string text = order.token + '\0';
    for (const auto& probe : battery) {
        for (const auto& check : probe.checks) text += check + '\0';
    }
    request.stdin_spec = StdinInline{std::move(text)};
    request.workspace = order.workspace;
    request.network = order.network == NetworkProbe::open;
    request.env = {order.env};
    request.timeout = order.timeout;
    request.output_limit_bytes = answer_bytes_max;
    request.label = "preflight";
    return request;
}

}  // namespace

asio::awaitable<Result<ProbeAnswers>> run_probe(const RunServices& services, Policy& policy,
                                                const ProbeOrder& order,
                                                const std::vector<Probe>& battery,
                                                ActiveRun& entry) {
    const auto admission = policy.admit_probe(probe_request(order, battery));
    if (!admission) co_return admission.error();
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
    if (report->tree != TreeState::empty) {
        co_return Error(ErrorKind::preflight_failed, "processes of mechad-probe outlive it");
    }
    co_return collector.answers();
}

}  // namespace mechad
