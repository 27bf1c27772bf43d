// SPDX-License-Identifier: MIT
// Carries a client's bytes to a command's stdin. A command that does not read makes the feed
// fill up, never grow: whoever pushes waits for room first.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <string>

#include "daemon/os/unique_fd.hpp"
#include "daemon/stream/wakeup.hpp"

namespace mechad {

class StdinFeed {
public:
    // Above this wait_room() waits. One message more may come on top (1 MiB at most).
    static constexpr std::size_t backlog_bytes_max = std::size_t{256} << 10;

    StdinFeed(const boost::asio::any_io_executor& executor, os::UniqueFd write_end);

    void push(std::string_view bytes);
    void end();  // end of file once all is written
    boost::asio::awaitable<void> wait_room();

    // Until all is written after end(); or the command closed its stdin, which is no failure;
    // or stop().
    boost::asio::awaitable<void> carry();
    void stop();

private:
    boost::asio::posix::stream_descriptor pipe_;
    Wakeup filled_;
    Wakeup drained_;
    std::string backlog_;
    std::size_t written_ = 0;  // of backlog_
    bool is_ended_ = false;
    bool is_closed_ = false;  // nothing is taken any more
};

}  // namespace mechad
