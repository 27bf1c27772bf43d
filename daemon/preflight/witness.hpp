// SPDX-License-Identifier: MIT
// A process outside of all boxes, of the same user, dumpable, with a secret in its environment
// and its arguments: what a box must neither see nor signal.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <string>

#include "daemon/launch/reaper.hpp"
#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad {

class Witness {
public:
    // `environment` is the one string it gets. It ends with this object or with the daemon.
    static Result<std::unique_ptr<Witness>> start(const boost::asio::any_io_executor& executor,
                                                  Reaper& reaper, const std::string& probe_binary,
                                                  const std::string& argument,
                                                  const std::string& environment);
    ~Witness();
    Witness(const Witness&) = delete;
    Witness& operator=(const Witness&) = delete;

    pid_t pid() const { return child_->pid; }

    // Whether somebody else than the daemon signalled it. Signals it first and waits for its word,
    // so that every earlier signal was noted; an error means that it did not answer, or that its
    // environment could not be read here, outside: nothing can be concluded.
    boost::asio::awaitable<Result<bool>> take_verdict();

private:
    Witness(const boost::asio::any_io_executor& executor, std::shared_ptr<Child> child,
            os::UniqueFd lifeline, os::UniqueFd words, std::string environment);
    boost::asio::awaitable<Result<char>> read_word();

    std::shared_ptr<Child> child_;
    os::UniqueFd lifeline_;
    std::shared_ptr<boost::asio::posix::stream_descriptor> words_;
    std::string environment_;
    bool is_ready_ = false;
};

}  // namespace mechad
