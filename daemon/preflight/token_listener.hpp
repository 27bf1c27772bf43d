// SPDX-License-Identifier: MIT
// A listener that judges whether anybody got through: what counts is the random token that
// arrived here, not what the other side says about itself.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <string>

#include "daemon/stream/task_group.hpp"
#include "daemon/stream/wakeup.hpp"
#include "proto/result.hpp"

namespace mechad {

class TokenListener {
public:
    using Protocol = boost::asio::generic::stream_protocol;
    using Endpoint = Protocol::endpoint;

    TokenListener(const boost::asio::any_io_executor& executor, std::string token);

    Result<void> listen(const Endpoint& endpoint);
    // Where it listens; the port is the kernel's choice when it was 0.
    Endpoint endpoint() const;

    // Whether the token came since the last call. First connects itself and waits for that
    // connection, so that every earlier one was accepted and read; an error means that this
    // control did not get through and nothing can be concluded.
    boost::asio::awaitable<Result<bool>> take_verdict();

    // Ends what runs; call before this object goes.
    boost::asio::awaitable<void> close();

private:
    using Socket = boost::asio::basic_stream_socket<Protocol>;

    boost::asio::awaitable<void> accept_all();
    boost::asio::awaitable<void> read_one(Socket socket);

    boost::asio::any_io_executor executor_;
    std::string token_;
    std::string control_token_;
    boost::asio::basic_socket_acceptor<Protocol> acceptor_;
    TaskGroup tasks_;
    Wakeup heard_;
    int reading_ = 0;
    bool token_came_ = false;
    bool control_came_ = false;
};

}  // namespace mechad
