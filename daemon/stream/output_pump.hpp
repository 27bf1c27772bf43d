// SPDX-License-Identifier: MIT
// Carries one output stream of a command to its client: reads the pipe only as fast as the client
// takes it, counts every byte, and past the limit reads on and throws away.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/os/unique_fd.hpp"
#include "daemon/run_client.hpp"

namespace mechad {

class OutputPump {
public:
    struct Target {
        OutputStream stream = OutputStream::out;
        RunClient* client = nullptr;
        std::optional<std::uint64_t> limit_bytes;  // no limit when empty
        std::function<void()> on_limit;            // called once, when the limit is passed
        std::size_t tail_bytes = 0;                // to be kept for tail_lines()
    };

    // `read_end` must be non-blocking.
    OutputPump(const boost::asio::any_io_executor& executor, os::UniqueFd read_end, Target target);

    // Until end of file, or until nothing more is there after finish().
    boost::asio::awaitable<void> carry();
    // Nothing can write any more: what is in the pipe is all there will be.
    void finish();

    bool is_ended() const { return is_ended_; }
    bool is_truncated() const { return is_truncated_; }
    std::uint64_t bytes() const { return bytes_; }
    // Of the last `tail_bytes`, delivered or not, the whole lines.
    std::string_view tail_lines() const;

private:
    void keep_tail(std::string_view chunk);
    boost::asio::awaitable<void> deliver(std::string_view chunk);

    boost::asio::posix::stream_descriptor pipe_;
    Target target_;
    std::vector<char> buffer_;
    std::string tail_;  // at most twice tail_bytes
    std::uint64_t bytes_ = 0;
    bool is_truncated_ = false;
    bool is_client_gone_ = false;
    bool is_finishing_ = false;
    bool is_ended_ = false;
};

}  // namespace mechad
