// SPDX-License-Identifier: MIT
// The socket: where it is, that it is ours alone, and a session for each who connects.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "daemon/connection_table.hpp"
#include "daemon/os/unique_fd.hpp"
#include "daemon/session.hpp"
#include "daemon/stream/wakeup.hpp"

namespace mechad {

// Binds `path` in a private directory (made 0700 when missing) and holds a lock beside it for the
// life of the process. The socket has mode 0600. Errors name the path and what to do.
class ServerSocket {
public:
    static Result<ServerSocket> bind(const std::string& path);
    // The same for a socket that somebody else bound to `path`, and who removes it: its directory
    // is judged as one that is made here, the file at `path` must be this very socket where that
    // can be told, and the lock is taken.
    static Result<ServerSocket> adopt(const std::string& path, os::UniqueFd listening);
    ServerSocket(ServerSocket&&) = default;
    ServerSocket& operator=(ServerSocket&&) = delete;
    ~ServerSocket() { remove(); }
    // Takes the socket file away if it is still ours; a second call does nothing.
    void remove();

    const os::UniqueFd& fd() const { return fd_; }
    os::UniqueFd release_fd() { return std::move(fd_); }
    const std::string& path() const { return path_; }

private:
    ServerSocket(std::string path, os::UniqueFd lock, os::UniqueFd fd, std::optional<os::FileId> id)
        : path_(std::move(path)), lock_(std::move(lock)), fd_(std::move(fd)), id_(id) {}

    std::string path_;
    os::UniqueFd lock_;
    os::UniqueFd fd_;
    std::optional<os::FileId> id_;  // of the socket file; empty: it is not ours to remove
};

class Server {
public:
    Server(const boost::asio::any_io_executor& executor, os::UniqueFd listening,
           const SessionServices& services);

    // Accepts until close() or a pause. Whoever was accepted is served.
    boost::asio::awaitable<void> accept_all();
    void close();

    // When the last connection ended, or the server was made; empty while one is open.
    std::optional<std::chrono::steady_clock::time_point> idle_since() const;
    // Accepts nobody any more. False when somebody came just before: he is served, and others are
    // accepted again.
    boost::asio::awaitable<bool> pause_if_idle();

private:
    std::optional<Error> refuse(const Connection& connection);
    void start_serving(Connection::Socket socket);
    boost::asio::awaitable<void> serve_one(Connection::Socket socket);

    boost::asio::any_io_executor executor_;
    boost::asio::local::stream_protocol::acceptor acceptor_;
    const SessionServices& services_;
    ConnectionTable connections_;
    Wakeup accepting_ended_;
    std::size_t open_count_ = 0;
    std::chrono::steady_clock::time_point last_end_;
    bool is_accepting_ = false;
    bool is_pausing_ = false;
};

}  // namespace mechad
