// SPDX-License-Identifier: MIT
// A run's client at the other end of a connection: messages to lines and back.
#pragma once

#include <optional>
#include <string>

#include "daemon/run_client.hpp"
#include "daemon/stream/connection.hpp"
#include "proto/codec.hpp"
#include "proto/output_encoder.hpp"

namespace mechad {

class ConnectionClient final : public RunClient {
public:
    explicit ConnectionClient(Connection& connection) : connection_(connection) {}

    boost::asio::awaitable<bool> started(const Started& started) override;
    boost::asio::awaitable<bool> output(OutputStream stream, std::string_view bytes) override;
    boost::asio::awaitable<bool> output_ended(OutputStream stream) override;
    boost::asio::awaitable<bool> changed(const Changed& changed) override;
    boost::asio::awaitable<ClientInput> next_input() override;
    boost::asio::awaitable<void> wait_gone() override { return connection_.wait_hangup(); }
    void stop_input() override { connection_.stop_watching(); }
    bool is_gone() const override { return connection_.is_hung_up(); }

private:
    // The lines of one chunk, kept to be reused. At most a third longer than a chunk.
    struct Outlet {
        OutputEncoder encoder;
        std::string lines;
    };
    Outlet& outlet(OutputStream stream) { return stream == OutputStream::out ? out_ : err_; }

    Connection& connection_;
    Outlet out_{OutputEncoder(OutputStream::out), {}};
    Outlet err_{OutputEncoder(OutputStream::err), {}};
};

}  // namespace mechad
