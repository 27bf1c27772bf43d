// SPDX-License-Identifier: MIT
// Result<T>: a value, or the Error that explains why something was not done. A verdict on a
// command that ran is never an Error (see ExitReport in messages.hpp).
#pragma once

#include <boost/system/result.hpp>
#include <string>
#include <utility>

#include "proto/error_kind.hpp"  // generated from errors.json

namespace mechad {

// What a refusal says. `message` is a whole clause with its object in it; `field` names the
// request member or the config key at fault (empty when there is none); `hint` is what to do.
// The wire adds "Nothing was executed." to every message, so callers leave it out.
class Error {
public:
    Error() = default;
    Error(ErrorKind kind, std::string message, std::string field = {}, std::string hint = {})
        : kind_(kind),
          message_(std::move(message)),
          field_(std::move(field)),
          hint_(std::move(hint)) {}

    ErrorKind kind() const { return kind_; }
    const std::string& message() const { return message_; }
    const std::string& field() const { return field_; }
    const std::string& hint() const { return hint_; }

    // The step of mechad-init (or of the launcher) that failed and its errno; empty and 0 when
    // the failure has none.
    const std::string& step() const { return step_; }
    int os_errno() const { return os_errno_; }

    Error with_step(std::string step, int os_errno) && {
        step_ = std::move(step);
        os_errno_ = os_errno;
        return std::move(*this);
    }
    // The same failure, blamed on a request member or config key.
    Error with_field(std::string field) && {
        field_ = std::move(field);
        return std::move(*this);
    }

private:
    ErrorKind kind_ = ErrorKind::internal;
    std::string message_;
    std::string field_;
    std::string hint_;
    std::string step_;
    int os_errno_ = 0;
};

// value() on an Error is a bug in mechad: callers look first.
[[noreturn]] inline void throw_exception_from_error(const Error& error,
                                                    const boost::source_location& where) {
    boost::throw_exception(std::logic_error("value() of an error: " + error.message()), where);
}

template <class T = void>
class [[nodiscard]] Result : public boost::system::result<T, Error> {
public:
    using boost::system::result<T, Error>::result;
};

}  // namespace mechad
