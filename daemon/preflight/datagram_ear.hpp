// SPDX-License-Identifier: MIT
// A UDP socket on 127.0.0.1 that judges whether anybody got through, as TokenListener does.
#pragma once

#include <string>

#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad {

class DatagramEar {
public:
    static Result<DatagramEar> open(std::string token);

    std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

    // Whether the token came since the last call. Sends itself a control first; an error means
    // that it did not arrive and nothing can be concluded. Does not wait: on loopback what was
    // sent before has arrived before.
    Result<bool> take_verdict();

private:
    DatagramEar(std::string token, os::UniqueFd fd, unsigned short port)
        : token_(std::move(token)), fd_(std::move(fd)), port_(port) {}

    std::string token_;
    os::UniqueFd fd_;
    unsigned short port_;  // host byte order
};

}  // namespace mechad
