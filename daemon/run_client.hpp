// SPDX-License-Identifier: MIT
// Whom a run talks to: a client's connection, or preflight. The run decides, this carries.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string_view>
#include <variant>

#include "proto/messages.hpp"

namespace mechad {

struct HalfClosed {};  // no more stdin; the client still reads
struct Gone {};        // the client left, or said something that ends the run
using ClientInput = std::variant<StdinMessage, SignalMessage, HalfClosed, Gone>;

class RunClient {
public:
    virtual ~RunClient() = default;

    // Each returns false when the client is gone. They wait for as long as it does not read.
    virtual boost::asio::awaitable<bool> started(const Started& started) = 0;
    virtual boost::asio::awaitable<bool> output(OutputStream stream, std::string_view bytes) = 0;
    virtual boost::asio::awaitable<bool> output_ended(OutputStream stream) = 0;
    virtual boost::asio::awaitable<bool> changed(const Changed& changed) = 0;

    // What the client says after its spawn. Gone after stop_input().
    virtual boost::asio::awaitable<ClientInput> next_input() = 0;
    // Returns when the client is gone, however much it said before; or after stop_input().
    virtual boost::asio::awaitable<void> wait_gone() = 0;
    virtual void stop_input() = 0;
    // The client left already, as far as can be known without waiting.
    virtual bool is_gone() const = 0;
};

}  // namespace mechad
