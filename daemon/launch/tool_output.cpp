// SPDX-License-Identifier: MIT
#include "daemon/launch/tool_output.hpp"

#include <fcntl.h>
#include <signal.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

#include "daemon/launch/spawn.hpp"
#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace asio = boost::asio;

namespace {

constexpr std::size_t output_bytes_max = std::size_t{64} << 10;

}  // namespace

asio::awaitable<Result<std::string>> read_output_of(asio::any_io_executor executor, Reaper& reaper,
                                                    std::string path, std::string option,
                                                    std::chrono::milliseconds deadline) {
    auto null = os::open_file("/dev/null", O_RDWR);
    if (!null) co_return null.error();
    auto pipe = os::make_pipe();
    if (!pipe) co_return pipe.error();
    const auto pid =
        spawn(path, {path, option}, {},
              {.in = null->get(), .out = pipe->write_end.get(), .err = null->get(), .kept = {}});
    if (!pid) co_return pid.error();
    const auto child = reaper.adopt(*pid);
    if (!child) co_return child.error();
    pipe->write_end.reset();

    // Shared with the timer's handler, which may be under way when all is over.
    const auto output =
        std::make_shared<asio::posix::stream_descriptor>(executor, pipe->read_end.release());
    asio::steady_timer timer(executor, deadline);
    const auto is_late = std::make_shared<bool>(false);
    timer.async_wait([child = *child, is_late, output](const auto& error) {
        if (error) return;
        *is_late = true;
        if (!child->is_ended) (void)os::signal_pidfd(child->pidfd, SIGKILL);
        boost::system::error_code ignored;
        output->cancel(ignored);  // a descendant may hold the other end
    });
    std::string text;
    std::array<char, 4096> buffer;
    while (text.size() < output_bytes_max) {
        const auto [error, got] = co_await output->async_read_some(
            asio::buffer(buffer), asio::as_tuple(asio::use_awaitable));
        text.append(buffer.data(), got);
        if (error) break;
    }
    timer.cancel();
    // What has said enough is not waited for; the reaper takes it when it ends.
    if (!(*child)->is_ended) (void)os::signal_pidfd((*child)->pidfd, SIGKILL);
    if (*is_late) {
        co_return Error(ErrorKind::sandbox_setup_failed,
                        path + " " + option + " did not end in time");
    }
    co_return text;
}

}  // namespace mechad
