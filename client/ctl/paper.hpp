// SPDX-License-Identifier: MIT
// What is printed on stdout for people: facts, one a line, and tables. Text that somebody else
// chose cannot steer the terminal: control characters are escaped.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace mechad::ctl {

// Shown by colour on a terminal, unless $NO_COLOR is set and not empty (no-color.org) or $TERM is
// absent or "dumb". Nothing is said by colour alone.
enum class Tone { plain, good, bad };

// What would steer a terminal is escaped; a backslash stays one, so that a command can be copied.
std::string shown(std::string_view text);

std::string painted(std::string text, Tone tone);

// "name         value". A value of several lines is indented.
void print_fact(std::string_view name, std::string_view value, Tone tone = Tone::plain);

class Table {
public:
    explicit Table(std::vector<std::string> heads) { add(std::move(heads)); }
    // As many cells as there are heads.
    void add(std::vector<std::string> cells);
    void print() const;

private:
    std::vector<std::vector<std::string>> rows_;  // the heads first
};

// "1.5s", "2m03s", "3h12m", "5d02h".
std::string format_span(std::chrono::milliseconds span);

}  // namespace mechad::ctl
