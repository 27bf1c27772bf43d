// SPDX-License-Identifier: MIT
#include "daemon/preflight/surroundings.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#include <algorithm>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstring>

#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace asio = boost::asio;

namespace {

TokenListener::Endpoint loopback_endpoint() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return TokenListener::Endpoint(&address, sizeof address);
}

// A name that begins with NUL is abstract.
TokenListener::Endpoint local_endpoint(const std::string& name) {
    const asio::local::stream_protocol::endpoint local(name);
    return TokenListener::Endpoint(local.data(), local.size(), 0);
}

std::string port_of(const TokenListener& listener) {
    sockaddr_in address{};
    const auto endpoint = listener.endpoint();
    std::memcpy(&address, endpoint.data(), std::min(endpoint.size(), sizeof address));
    return std::to_string(ntohs(address.sin_port));
}

}  // namespace

Surroundings::Surroundings(const asio::any_io_executor& executor, Reaper& reaper)
    : executor_(executor),
      reaper_(reaper),
      token_(os::random_hex(16)),
      word_("MECHAD_CANARY_" + os::random_hex(4)),
      control_(os::random_hex(16)),
      abstract_name_("mechad-canary-" + os::random_hex(8)),
      tcp_(executor, token_),
      path_(executor, token_),
      abstract_(executor, token_) {}

Surroundings::~Surroundings() {
    (void)::unsetenv(word_.c_str());  // NOLINT(concurrency-mt-unsafe): of the loop's thread only
}

Result<void> Surroundings::set_up(const Scratch& scratch, const std::string& probe_binary) {
    auto listening = tcp_.listen(loopback_endpoint());
    if (listening) listening = path_.listen(local_endpoint(scratch.socket_path()));
    if (listening) {
        listening = abstract_.listen(local_endpoint(std::string(1, '\0') + abstract_name_));
    }
    if (!listening) return listening.error();
    auto udp = DatagramEar::open(token_);
    if (!udp) return udp.error();
    udp_.emplace(*std::move(udp));
    auto ipc = IpcBait::lay(scratch.secret(), scratch.queue_name());
    if (!ipc) return ipc.error();
    ipc_.emplace(*std::move(ipc));

    const std::string revealed = word_ + "=" + scratch.secret();
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else reads or writes the environment
    (void)::setenv(word_.c_str(), scratch.secret().c_str(), 1);
    auto witness = Witness::start(executor_, reaper_, probe_binary, revealed, revealed);
    if (!witness) return witness.error();
    witness_ = *std::move(witness);
    return {};
}

void Surroundings::add_to(ProbeTargets& targets) const {
    targets.token = token_;
    targets.word = word_;
    targets.control = "=" + control_;
    targets.tcp = "127.0.0.1:" + port_of(tcp_);
    targets.udp = udp_->address();
    targets.abstract_name = abstract_name_;
    targets.witness = witness_->pid();
    targets.shared_memory = ipc_->shared_memory();
    targets.queue = ipc_->queue();
}

asio::awaitable<Result<void>> Surroundings::look(Sightings& seen) {
    const auto tcp = co_await tcp_.take_verdict();
    if (!tcp) co_return tcp.error();
    const auto path = co_await path_.take_verdict();
    if (!path) co_return path.error();
    const auto abstract = co_await abstract_.take_verdict();
    if (!abstract) co_return abstract.error();
    const auto udp = udp_->take_verdict();
    if (!udp) co_return udp.error();
    const auto signalled = co_await witness_->take_verdict();
    if (!signalled) co_return signalled.error();
    seen.tcp_heard = *tcp;
    seen.path_heard = *path;
    seen.abstract_heard = *abstract;
    seen.udp_heard = *udp;
    seen.witness_signalled = *signalled;
    co_return Result<void>();
}

asio::awaitable<void> Surroundings::close() {
    co_await tcp_.close();
    co_await path_.close();
    co_await abstract_.close();
    witness_.reset();
}

}  // namespace mechad
