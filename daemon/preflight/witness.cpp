// SPDX-License-Identifier: MIT
#include "daemon/preflight/witness.hpp"

#include <fcntl.h>
#include <signal.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "daemon/launch/spawn.hpp"
#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds answer_deadline{5};
constexpr std::size_t environment_bytes_max = std::size_t{64} << 10;

// What mechad-probe says as a witness.
constexpr char ready_word = 'r';
constexpr char own_signal_word = 'c';

}  // namespace

Result<std::unique_ptr<Witness>> Witness::start(const asio::any_io_executor& executor,
                                                Reaper& reaper, const std::string& probe_binary,
                                                const std::string& argument,
                                                const std::string& environment) {
    auto lifeline = os::make_pipe();
    if (!lifeline) return lifeline.error();
    auto words = os::make_pipe();
    if (!words) return words.error();
    auto null = os::open_file("/dev/null", O_WRONLY);
    if (!null) return null.error();
    const auto pid = spawn(probe_binary, {"mechad-probe", "witness", argument}, {environment},
                           {.in = lifeline->read_end.get(),
                            .out = words->write_end.get(),
                            .err = null->get(),
                            .kept = {}});
    if (!pid) return pid.error();
    auto child = reaper.adopt(*pid);
    if (!child) return child.error();
    return std::unique_ptr<Witness>(new Witness(executor, std::move(*child),
                                                std::move(lifeline->write_end),
                                                std::move(words->read_end), environment));
}

Witness::Witness(const asio::any_io_executor& executor, std::shared_ptr<Child> child,
                 os::UniqueFd lifeline, os::UniqueFd words, std::string environment)
    : child_(std::move(child)),
      lifeline_(std::move(lifeline)),
      words_(std::make_shared<asio::posix::stream_descriptor>(executor, words.release())),
      environment_(std::move(environment)) {}

Witness::~Witness() {
    if (!child_->is_ended) (void)os::signal_pidfd(child_->pidfd, SIGKILL);
}

asio::awaitable<Result<char>> Witness::read_word() {
    asio::steady_timer deadline(words_->get_executor(), answer_deadline);
    deadline.async_wait([words = words_](const auto& error) {
        boost::system::error_code ignored;
        if (!error) words->cancel(ignored);
    });
    char word = 0;
    const auto [error, got] = co_await words_->async_read_some(asio::buffer(&word, 1),
                                                               asio::as_tuple(asio::use_awaitable));
    if (error) co_return Error(ErrorKind::internal, "preflight's witness does not answer");
    co_return word;
}

asio::awaitable<Result<bool>> Witness::take_verdict() {
    if (!is_ready_) {
        const auto ready = co_await read_word();
        if (!ready) co_return ready.error();
        is_ready_ = *ready == ready_word;
    }
    const auto environment =
        os::read_file("/proc/" + std::to_string(child_->pid) + "/environ", environment_bytes_max);
    if (!environment || environment->find(environment_) == std::string::npos) {
        co_return Error(ErrorKind::internal, "preflight cannot read the witness's environment");
    }
    if (auto sent = os::signal_pidfd(child_->pidfd, SIGURG); !sent) co_return sent.error();
    // A signal that was pending already swallows ours and comes in its place.
    const auto heard = co_await read_word();
    if (!heard) co_return heard.error();
    co_return *heard != own_signal_word;
}

}  // namespace mechad
