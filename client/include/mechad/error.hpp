// SPDX-License-Identifier: MIT
// How every call of the library fails: by throwing Error. Nothing else is thrown but what the
// standard library throws for want of memory. How a command ended is never an Error: an exit code
// of 1, a signal and a timeout are ExitReports.
#pragma once

#include <mechad/error_kind.hpp>
#include <mechad/export.hpp>
#include <stdexcept>
#include <string>

namespace mechad::client {

// Whether the command that was asked for ran.
enum class Executed {
    no,      // and it will not
    yes,     // it was started; when the run is lost, the daemon has killed it or is about to
    unknown  // the request went out and no answer came: it may have run, wholly or in part
};

class MECHAD_CLIENT_EXPORT Error : public std::runtime_error {
public:
    // What a failure says beyond its message; empty and 0 where there is nothing to say.
    struct Details {
        std::string kind_name = {};
        std::string field = {};
        std::string hint = {};
        std::string step = {};
        int os_errno = 0;
    };

    // `message` is a clause without a full stop, or what the daemon worded. What it does not say of
    // the command yet is appended to it: "Nothing was executed."; where that is not certain, the
    // sentence is left out.
    Error(ErrorKind kind, Executed executed, const std::string& message, Details details);
    Error(ErrorKind kind, Executed executed, const std::string& message)
        : Error(kind, executed, message, Details()) {}
    Error(const Error& other);
    Error& operator=(const Error& other);
    ~Error() override;

    // what() is one line for people, in UTF-8. It may hold names that a command chose: escape
    // control characters before a terminal sees them.

    ErrorKind kind() const { return kind_; }
    // As on the wire; of kind() unless that is `unrecognized`.
    const std::string& kind_name() const { return details_.kind_name; }
    // Only Executed::no permits to try again without asking what the first attempt did.
    Executed executed() const { return executed_; }
    // Whether the same call may succeed later without anybody changing anything.
    bool is_retryable() const { return mechad::client::is_retryable(kind_); }

    // The member of the request at fault: "network", "env.NAME", "argv[3]".
    const std::string& field() const { return details_.field; }
    // What to do.
    const std::string& hint() const { return details_.hint; }
    // Which step of making the box, or of exec, failed, and errno of it.
    const std::string& step() const { return details_.step; }
    int os_errno() const { return details_.os_errno; }

private:
    ErrorKind kind_;
    Executed executed_;
    Details details_;
};

}  // namespace mechad::client
