// SPDX-License-Identifier: MIT
// The command line of mechad-ctl.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/messages.hpp"

namespace mechad::ctl {

struct Options {
    std::string socket;  // empty: find_socket_path()
    bool json = false;   // status, describe, ps, doctor
    bool hints = false;  // run
    SpawnParams spawn;   // run; describe, without a program
    ListParams list;     // ps
    KillParams kill;
};

// The words after the verb, one by one.
class Words {
public:
    explicit Words(std::vector<std::string> words) : words_(std::move(words)) {}
    bool is_over() const { return next_ == words_.size(); }
    bool next_is(std::string_view word) const { return !is_over() && words_[next_] == word; }
    const std::string& take() { return words_[next_++]; }
    std::vector<std::string> take_rest();

private:
    std::vector<std::string> words_;
    std::size_t next_ = 0;
};

// Of a command line that is not understood; the hint names --help.
Error fault(const std::string& message);

// What each verb takes.
Result<void> parse_run(Words& words, Options& options);
Result<void> parse_describe(Words& words, Options& options);
Result<void> parse_status(Words& words, Options& options);
Result<void> parse_doctor(Words& words, Options& options);
Result<void> parse_recheck(Words& words, Options& options);
Result<void> parse_ps(Words& words, Options& options);
Result<void> parse_kill(Words& words, Options& options);

}  // namespace mechad::ctl
