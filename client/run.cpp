// SPDX-License-Identifier: MIT
#include <mechad/run.hpp>
#include <utility>

#include "client/control_call.hpp"
#include "client/convert.hpp"
#include "client/failure.hpp"
#include "client/run_impl.hpp"

namespace mechad::client {

Run::Run(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Run::Run(Run&& other) noexcept = default;
Run& Run::operator=(Run&& other) noexcept = default;
Run::~Run() = default;

std::optional<Event> Run::next(Time until) {
    if (impl_->held) return std::exchange(impl_->held, std::nullopt);
    for (Turns turns(until);;) {
        if (auto message = impl_->channel.take()) {
            Event event = from_wire(*std::move(message));
            if (const auto* const started = std::get_if<Started>(&event)) impl_->started = *started;
            if (const auto* const ended = std::get_if<Ended>(&event)) impl_->exit = *ended;
            return event;
        }
        if (impl_->channel.is_over() || !turns.take() || !impl_->channel.wait(until)) {
            return std::nullopt;
        }
    }
}

const Started* Run::wait_started(Time until) {
    // The first event is Started or an Error.
    if (!impl_->started) impl_->held = next(until);
    return impl_->started ? &*impl_->started : nullptr;
}

bool Run::relay(const std::function<void(const Event&)>& on_event, Time until) {
    while (const auto event = next(until)) {
        on_event(*event);
        if (has_passed(until)) break;
    }
    return is_over();
}

const std::optional<Started>& Run::started() const { return impl_->started; }
const std::optional<ExitReport>& Run::exit() const { return impl_->exit; }
bool Run::is_over() const { return impl_->channel.is_over() && !impl_->held; }

std::size_t Run::write_stdin(std::string_view bytes, Time until) {
    RunChannel& channel = impl_->channel;
    channel.check();
    if (channel.is_over() || wait_started(until) == nullptr) return 0;
    if (!channel.is_input_open() || impl_->is_input_fixed) {
        throw Error(ErrorKind::invalid_request, channel.executed(),
                    "the input of this run is not streamed, or has been closed",
                    {.field = "input"});
    }
    Turns turns(until);
    for (std::size_t taken = 0;;) {
        while (taken < bytes.size() && channel.takes_input() && turns.take()) {
            taken += channel.give_input(bytes.substr(taken));
        }
        const bool is_sent = taken == bytes.size() && channel.channel().unsent_bytes() == 0;
        if (is_sent || channel.channel().is_receive_over() ||
            channel.channel().waiting_bytes() >= waiting_bytes_max || !turns.take() ||
            !channel.wait(until)) {
            return taken;
        }
    }
}

void Run::close_stdin() {
    impl_->channel.check();
    if (impl_->is_input_fixed) return;
    impl_->channel.end_input();
}

bool Run::send_signal(int signal, Time until) {
    impl_->channel.check();
    if (impl_->channel.is_over()) return false;
    if (wait_started(until) == nullptr) throw late("the start", impl_->channel.executed());
    try {
        (void)ask(impl_->socket_path, KillParams{impl_->channel.run(), signal}, until);
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::no_such_run) return false;
        // Of the signal: the command runs, whatever became of that.
        throw again(error, Executed::yes, error.what());
    }
    return true;
}

void Run::cancel() {
    impl_->held.reset();
    impl_->channel.close();
}

int Run::fd() const { return impl_->channel.channel().fd(); }

short Run::poll_events() const { return impl_->channel.channel().wanted_events(); }

}  // namespace mechad::client
