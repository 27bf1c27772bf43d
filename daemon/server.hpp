// SPDX-License-Identifier: MIT
// The socket: where it is, that it is ours alone, and a session for each who connects.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <optional>
#include <string>

#include "daemon/connection_table.hpp"
#include "daemon/os/unique_fd.hpp"
#include "daemon/session.hpp"

namespace mechad {

// Binds `path` in a private directory (made 0700 when missing) and holds a lock beside it for the
// life of the process. The socket has mode 0600. Errors name the path and what to do.
class ServerSocket {
public:
    static Result<ServerSocket> bind(const std::string& path);
    ServerSocket(ServerSocket&&) = default;
    ServerSocket& operator=(ServerSocket&&) = delete;
    ~ServerSocket() { remove(); }
    // Takes the socket file away if it is still ours; a second call does nothing.
    void remove();

    const os::UniqueFd& fd() const { return fd_; }
    os::UniqueFd release_fd() { return std::move(fd_); }
    const std::string& path() const { return path_; }

private:
    ServerSocket(std::string path, os::UniqueFd lock, os::UniqueFd fd, os::FileId id)
        : path_(std::move(path)), lock_(std::move(lock)), fd_(std::move(fd)), id_(id) {}

    std::string path_;
    os::UniqueFd lock_;
    os::UniqueFd fd_;
    os::FileId id_;  // of the socket file
};

class Server {
public:
    Server(const boost::asio::any_io_executor& executor, os::UniqueFd listening,
           const SessionServices& services);

    // Accepts until close().
    boost::asio::awaitable<void> accept_all();
    void close();

private:
    std::optional<Error> refuse(const Connection& connection);
    boost::asio::awaitable<void> serve_one(Connection::Socket socket);

    boost::asio::any_io_executor executor_;
    boost::asio::local::stream_protocol::acceptor acceptor_;
    const SessionServices& services_;
    ConnectionTable connections_;
};

}  // namespace mechad
