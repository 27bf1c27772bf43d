// SPDX-License-Identifier: MIT
// One client's socket as lines in and lines out. Owns the socket and its buffers; knows nothing
// of what the lines mean.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace mechad {

enum class ReadEnd {
    line,         // a whole line is there
    half_closed,  // the client sends no more and may still read
    closed,       // the client is gone
    too_long,     // more than request_line_bytes_max bytes without an LF
    timed_out
};

struct ReadLine {
    ReadEnd end = ReadEnd::closed;
    std::string line;  // without its LF; on half_closed, what came without one
};

class Connection {
public:
    using Socket = boost::asio::local::stream_protocol::socket;
    using Time = boost::asio::steady_timer::time_point;

    explicit Connection(Socket socket);

    // One reader at a time.
    boost::asio::awaitable<ReadLine> read_line(Time until = Time::max());

    // Writes whole lines, each ended by LF. Several writers take turns and none interleaves.
    // False when the client is gone. Waits for as long as the client does not read.
    boost::asio::awaitable<bool> write(std::string_view lines);

    // Returns when the client closed its end entirely, read or unread; or after stop_watching().
    boost::asio::awaitable<void> wait_hangup();
    // Ends a pending read_line and wait_hangup. Writing stays possible.
    void stop_watching();

    bool is_hung_up() const;
    int descriptor() const;
    // Writes what fits of `last_line` without waiting, unless another line is half written, and
    // closes. What is pending ends.
    void dismiss(std::string_view last_line);
    void close();

private:
    std::optional<std::string> take_line();

    Socket socket_;
    std::string inbox_;
    std::size_t scanned_ = 0;  // of inbox_, without an LF
    bool is_watching_ = true;
    bool is_writing_ = false;
    bool is_broken_ = false;  // a write failed
    boost::asio::steady_timer write_turn_;
};

}  // namespace mechad
