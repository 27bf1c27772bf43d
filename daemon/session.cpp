// SPDX-License-Identifier: MIT
#include "daemon/session.hpp"

#include <cerrno>
#include <chrono>

#include "daemon/box_report.hpp"
#include "daemon/connection_client.hpp"
#include "daemon/log.hpp"
#include "proto/codec.hpp"

namespace mechad {

namespace asio = boost::asio;

namespace {

// For the whole first line. Later lines may take as long as they like.
constexpr std::chrono::seconds first_line_deadline{5};

// What failed for want of descriptors or memory says nothing about the request.
Error as_shortage(const Error& error) {
    const int cause = error.os_errno();
    if (cause != EMFILE && cause != ENFILE && cause != ENOMEM) return error;
    return Error(ErrorKind::overloaded, error.message(), {}, "try again")
        .with_step(error.step(), cause);
}

class Session {
public:
    Session(const SessionServices& services, Connection& connection, ConnectionTable::Seat& seat)
        : services_(services), connection_(connection), seat_(seat) {}

    asio::awaitable<void> serve() {
        auto deadline = std::chrono::steady_clock::now() + first_line_deadline;
        for (bool is_first = true;; is_first = false) {
            const auto call = co_await read_call(deadline);
            if (!call) co_return;
            if (const auto* spawn = std::get_if<SpawnParams>(&call->params)) {
                co_return co_await answer_spawn(call->id, *spawn, is_first);
            }
            const bool is_answered = co_await answer_control(*call);
            if (!is_answered) co_return;
            deadline = Connection::Time::max();
        }
    }

private:
    asio::awaitable<ReadLine> wait_line(Connection::Time deadline) {
        seat_.set_idle();
        ReadLine read = co_await connection_.read_line(deadline);
        if (!seat_.set_busy()) co_return ReadLine{ReadEnd::closed, {}};
        co_return read;
    }

    // Empty when the connection is over; a bad line was answered then.
    asio::awaitable<std::optional<Call>> read_call(Connection::Time deadline) {
        const ReadLine read = co_await wait_line(deadline);
        services_.preflight->note_received(read.line);
        switch (read.end) {
            case ReadEnd::closed: co_return std::nullopt;
            case ReadEnd::half_closed:
                if (!read.line.empty()) {
                    co_await refuse(std::nullopt, Error(ErrorKind::parse_error,
                                                        "the last line has no line feed"));
                }
                co_return std::nullopt;
            case ReadEnd::too_long:
                co_await refuse(std::nullopt,
                                Error(ErrorKind::parse_error, "the line is longer than 1 MiB"));
                co_return std::nullopt;
            case ReadEnd::timed_out:
                co_await refuse(std::nullopt, Error(ErrorKind::invalid_request,
                                                    "no whole line came within 5 seconds"));
                co_return std::nullopt;
            case ReadEnd::line: break;
        }
        auto message = decode_client_message(read.line);
        if (!message) {
            co_await refuse(message.error().id(), message.error().error());
            co_return std::nullopt;
        }
        if (auto* call = std::get_if<Call>(&*message)) co_return std::move(*call);
        co_await refuse(std::nullopt, Error(ErrorKind::invalid_request,
                                            "stdin and signal come after a spawn", "method"));
        co_return std::nullopt;
    }

    asio::awaitable<void> answer_spawn(const RequestId& id, const SpawnParams& params,
                                       bool is_first) {
        if (!is_first) {
            co_return co_await refuse(id, Error(ErrorKind::invalid_request,
                                                "spawn must be the first call of its connection",
                                                "method", "open a connection for each run"));
        }
        co_await services_.preflight->wait_finished();
        LogFields log{.backend = std::string(services_.run_services->backend->name)};
        if (auto refusal = services_.preflight->refusal()) {
            co_return co_await refuse_run(id, log, *refusal);
        }
        const auto admission = services_.policy->admit(params);
        if (!admission) co_return co_await refuse_run(id, log, as_shortage(admission.error()));
        log.workspace = admission->box.workspace().path;
        const Proofs proofs = services_.preflight->proofs();  // as of now, for the whole run
        const auto ticket = enter_table(*admission, proofs);
        if (!ticket) co_return co_await refuse_run(id, log, ticket.error());
        log.run_id = (*ticket)->id;

        ConnectionClient client(connection_);
        Run run(*services_.run_services, *admission, client, **ticket);
        const auto report = co_await run.execute(proofs);
        services_.preflight->note_box(run.box_proof(), report ? "" : report.error().message());
        if (!report) co_return co_await refuse_run(id, log, as_shortage(report.error()));
        log_run_ended(log, *report);
        (*ticket)->report = *report;
        // The run stays in the table until its client has the result.
        const std::string line = encode_result(id, *report);
        (void)co_await connection_.write(line);
    }

    Result<RunTable::Ticket> enter_table(const Admission& admission, const Proofs& proofs) {
        const Box& box = admission.box;
        const bool is_closed = lets_nothing_out(box, proofs);
        return services_.runs->enter(admission.command.label, box.workspace().path,
                                     footprint_of(box, is_closed), is_closed,
                                     [this, &box](Footprint& footprint) {
                                         services_.ground->update(footprint, box.workspace());
                                     });
    }

    bool lets_nothing_out(const Box& box, const Proofs& proofs) const {
        const auto alone = make_box_report(*services_.run_services->backend, box, proofs, {});
        return alone.capabilities.egress == Egress::none;
    }

    Footprint footprint_of(const Box& box, bool is_closed) const {
        services_.ground->refresh();
        Footprint footprint = services_.ground->find(box.workspace());
        if (is_closed) {
            footprint.exposure = find_exposure(*services_.run_services->bound_sockets, box);
        }
        return footprint;
    }

    // False when the client is gone or had to give way: one that waits for an answer, or does not
    // take it, has no better right to its place than a silent one.
    asio::awaitable<bool> answer_control(const Call& call) {
        seat_.set_idle();
        std::string line;
        if (const auto* describing = std::get_if<DescribeParams>(&call.params)) {
            co_await services_.preflight->wait_finished();
            line = describe(call.id, *describing);
        } else if (std::holds_alternative<RecheckParams>(call.params)) {
            co_await services_.preflight->recheck();
            const auto& preflight = *services_.preflight;
            line = preflight.is_aborted() ? encode_error(call.id, *preflight.refusal())
                                          : encode_result(call.id, preflight.report());
        } else if (std::holds_alternative<StatusParams>(call.params)) {
            line = encode_result(call.id, make_status(*services_.status_facts, *services_.policy,
                                                      *services_.preflight, *services_.runs));
        } else if (const auto* listing = std::get_if<ListParams>(&call.params)) {
            line = list(call.id, *listing);
        } else {
            line = kill(call.id, std::get<KillParams>(call.params));
        }
        const bool is_written = co_await connection_.write(line);
        co_return seat_.set_busy() && is_written;
    }

    std::string describe(const RequestId& id, const DescribeParams& params) {
        if (const auto refusal = services_.preflight->refusal()) return encode_error(id, *refusal);
        SpawnParams request = params.spawn;
        request.argv = {"true"};  // what is told does not depend on it
        const auto admission = services_.policy->admit(request);
        if (!admission) return encode_error(id, as_shortage(admission.error()));

        const Box& box = admission->box;
        const Backend& backend = *services_.run_services->backend;
        const Proofs proofs = services_.preflight->proofs();
        std::optional<std::string> because;
        if (lets_nothing_out(box, proofs)) {
            because = services_.runs->find_lowering(footprint_of(box, true));
        }
        return encode_result(
            id, DescribeReport{make_box_report(backend, box, proofs, because.value_or("")),
                               binds_of(backend, box)});
    }

    std::string list(const RequestId& id, const ListParams& params) {
        ListReport report{.runs = services_.runs->list()};
        if (params.recent) report.recent = services_.runs->list_recent();
        return encode_result(id, report);
    }

    std::string kill(const RequestId& id, const KillParams& params) {
        ActiveRun* run = services_.runs->find(params.run);
        if (run == nullptr) {
            return encode_error(
                id, Error(ErrorKind::no_such_run, "no active run is called " + params.run, "run",
                          "list names the active runs"));
        }
        if (params.signal && run->signal) run->signal(*params.signal);
        if (!params.signal && run->stop) run->stop(EndReason::killed);
        return encode_result(id, KillReport{params.run});
    }

    asio::awaitable<void> refuse_run(const RequestId& id, LogFields log, Error error) {
        log_run_refused(std::move(log), error);
        co_await refuse(id, std::move(error));
    }

    // The last word: nothing runs here that would have to be spared.
    asio::awaitable<void> refuse(std::optional<RequestId> id, Error error) {
        seat_.set_idle();
        const std::string line = encode_error(id, error);
        (void)co_await connection_.write(line);
    }

    const SessionServices& services_;
    Connection& connection_;
    ConnectionTable::Seat& seat_;
};

}  // namespace

asio::awaitable<void> serve(const SessionServices& services, Connection& connection,
                            ConnectionTable::Seat& seat) {
    Session session(services, connection, seat);
    co_await session.serve();
}

}  // namespace mechad
