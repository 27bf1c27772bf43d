// SPDX-License-Identifier: MIT
#include "daemon/launch/live_box.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>

#include "daemon/os/syscalls.hpp"
#include "daemon/stream/rethrow.hpp"

namespace mechad {

namespace asio = boost::asio;
using Socket = asio::local::stream_protocol::socket;
constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

// Shared with the reading coroutine, which may outlive the LiveBox by one turn of the loop.
struct LiveBox::State {
    State(const asio::any_io_executor& executor, os::UniqueFd control, os::UniqueFd stderr_end,
          std::shared_ptr<Child> launcher, std::function<void()> callback)
        : socket(executor, asio::local::stream_protocol(), control.release()),
          diagnostics(std::move(stderr_end)),
          child(std::move(launcher)),
          on_news(std::move(callback)),
          setup_timer(executor, box_setup_deadline) {}

    void tell() {
        if (on_news) on_news();
    }
    void lose() {
        news.is_lost = true;
        tell();
    }

    Socket socket;
    os::UniqueFd diagnostics;
    std::shared_ptr<Child> child;
    std::function<void()> on_news;
    asio::steady_timer setup_timer;
    BoxNews news;
    std::string inbox;
    pid_t inbox_sender = 0;
};

namespace {

using init_wire::Header;
using init_wire::Type;

// Init's own messages are all small; anything longer is not from our init.
constexpr std::size_t init_body_bytes_max = 256;

template <class Body>
std::optional<Body> body_as(std::string_view body) {
    static_assert(std::is_trivially_copyable_v<Body>);
    if (body.size() != sizeof(Body)) return std::nullopt;
    Body value;
    std::memcpy(&value, body.data(), sizeof value);
    return value;
}

// One message of init; false when it makes no sense.
bool note_message(BoxNews& news, Type type, std::string_view body, pid_t sender) {
    switch (type) {
        case Type::ready:
            news.ready = body_as<init_wire::Ready>(body);
            news.init_pid = sender;
            return news.ready.has_value();
        case Type::hello: news.command_pid = sender; return body.empty();
        case Type::started:
            news.is_started = true;
            return body.size() == sizeof(init_wire::Started);
        case Type::failed:
            news.failed = body_as<init_wire::Failed>(body);
            return news.failed.has_value();
        case Type::exited:
            news.exited = body_as<init_wire::Exited>(body);
            return news.exited.has_value();
        case Type::empty: news.is_empty = true; return body.empty();
        default: return false;
    }
}

// Takes whole messages off the inbox; false when one makes no sense.
bool take_messages(std::string& inbox, pid_t sender, BoxNews& news) {
    std::size_t taken = 0;
    while (inbox.size() - taken >= sizeof(Header)) {
        Header header;
        std::memcpy(&header, inbox.data() + taken, sizeof header);
        if (header.size > init_body_bytes_max) return false;
        if (inbox.size() - taken < sizeof header + header.size) break;
        const std::string_view body(inbox.data() + taken + sizeof header, header.size);
        if (!note_message(news, header.type, body, sender)) return false;
        taken += sizeof header + header.size;
    }
    inbox.erase(0, taken);
    return true;
}

enum class Received { nothing, bytes, end };

// The kernel never merges bytes of different senders into one recvmsg (unix(7), SCM_CREDENTIALS),
// so the sender of what is read now is known.
Received receive(int fd, std::string& inbox, pid_t& sender) {
    std::array<char, 1024> buffer;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
    iovec part{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return errno == EAGAIN || errno == EINTR ? Received::nothing : Received::end;
    if (got == 0) return Received::end;
    for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr;
         item = CMSG_NXTHDR(&message, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_CREDENTIALS) continue;
        ucred credentials;
        std::memcpy(&credentials, CMSG_DATA(item), sizeof credentials);
        sender = credentials.pid;
    }
    inbox.append(buffer.data(), static_cast<std::size_t>(got));
    return Received::bytes;
}

// Header and the first part of the body with three descriptors; returns the bytes taken.
ssize_t send_with_descriptors(int socket, std::string_view bytes, const std::array<int, 3>& fds) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof fds);
    std::memcpy(CMSG_DATA(item), fds.data(), sizeof fds);
    return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Small, and init reads at once: a full buffer means an init that is stuck, which the deadlines
// of the run meet.
void send_small(int socket, Type type, std::string_view body) {
    const Header header{type, static_cast<std::uint32_t>(body.size())};
    std::string message(sizeof header, '\0');
    std::memcpy(message.data(), &header, sizeof header);
    message.append(body);
    (void)::send(socket, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

LiveBox::LiveBox(const asio::any_io_executor& executor, os::UniqueFd control,
                 os::UniqueFd diagnostics, std::shared_ptr<Child> child, Reaper& reaper,
                 std::function<void()> on_news)
    : state_(std::make_shared<State>(executor, std::move(control), std::move(diagnostics),
                                     std::move(child), std::move(on_news))),
      reaper_(reaper) {
    const auto read_news = [](std::shared_ptr<State> state) -> asio::awaitable<void> {
        for (;;) {
            const auto [error] = co_await state->socket.async_wait(Socket::wait_read, as_values);
            if (error) co_return;  // the LiveBox is gone
            const auto received =
                receive(state->socket.native_handle(), state->inbox, state->inbox_sender);
            if (received == Received::nothing) continue;
            if (received == Received::end ||
                !take_messages(state->inbox, state->inbox_sender, state->news)) {
                state->lose();
                co_return;
            }
            if (state->news.is_started || state->news.failed) state->setup_timer.cancel();
            state->tell();
        }
    };
    asio::co_spawn(executor, read_news(state_), rethrow);

    state_->child->on_ended = [weak = std::weak_ptr<State>(state_)] {
        const auto state = weak.lock();
        if (!state) return;
        state->news.is_ended = true;
        state->news.wait_status = state->child->wait_status;
        state->tell();
    };
    state_->setup_timer.async_wait([state = state_](const auto& error) {
        if (error || state->child->is_ended) return;
        state->news.is_late = true;
        (void)os::signal_pidfd(state->child->pidfd, SIGKILL);
    });
}

LiveBox::~LiveBox() {
    state_->on_news = nullptr;
    state_->setup_timer.cancel();
    boost::system::error_code ignored;
    state_->socket.close(ignored);
    // Init hears of it by its socket. A launcher that never came as far holds nothing but itself.
    if (!state_->news.ready) kill_launcher();
    reaper_.abandon(state_->child);
}

const BoxNews& LiveBox::news() const { return state_->news; }

asio::awaitable<Result<void>> LiveBox::send_command(std::string body, CommandStdio stdio) {
    const Header header{Type::command, static_cast<std::uint32_t>(body.size())};
    std::string message(sizeof header, '\0');
    std::memcpy(message.data(), &header, sizeof header);
    message.append(body);

    const auto state = state_;  // this object may go while we wait
    std::string_view rest = message;
    bool with_descriptors = true;
    while (!rest.empty()) {
        const int socket = state->socket.native_handle();
        const ssize_t sent =
            with_descriptors
                ? send_with_descriptors(socket, rest,
                                        {stdio.in.get(), stdio.out.get(), stdio.err.get()})
                : ::send(socket, rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) {
            with_descriptors = false;
            rest.remove_prefix(static_cast<std::size_t>(sent));
            continue;
        }
        if (errno != EAGAIN && errno != EINTR) {
            co_return os::os_error("hand the command to mechad-init", errno, "sendmsg");
        }
        const auto [error] = co_await state->socket.async_wait(Socket::wait_write, as_values);
        if (error) co_return Error(ErrorKind::internal, "the box went away");
    }
    co_return Result<void>();
}

void LiveBox::send_signal(int signal) {
    const init_wire::Signal body{signal};
    send_small(state_->socket.native_handle(), Type::signal,
               {reinterpret_cast<const char*>(&body), sizeof body});
}

void LiveBox::kill_tree() { send_small(state_->socket.native_handle(), Type::kill_tree, {}); }

void LiveBox::kill_launcher() {
    if (!state_->child->is_ended) (void)os::signal_pidfd(state_->child->pidfd, SIGKILL);
}

std::string LiveBox::read_diagnostics() {
    if (!state_->diagnostics) return {};
    std::string text(4096, '\0');
    const ssize_t got = ::read(state_->diagnostics.get(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    for (char& byte : text) {
        if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) byte = ' ';
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

}  // namespace mechad
