// SPDX-License-Identifier: MIT
#include "client/ctl/paper.hpp"

#include <doctest/doctest.h>

#include <iostream>
#include <sstream>

using namespace mechad::ctl;
using namespace std::chrono_literals;

namespace {

// What is printed while it lives, which is not on a terminal.
class Printed {
public:
    Printed() : before_(std::cout.rdbuf(text_.rdbuf())) {}
    ~Printed() { std::cout.rdbuf(before_); }
    Printed(const Printed&) = delete;
    Printed& operator=(const Printed&) = delete;
    std::string text() const { return text_.str(); }

private:
    std::ostringstream text_;
    std::streambuf* before_;
};

std::string printed_fact(std::string_view name, std::string_view value) {
    const Printed printed;
    print_fact(name, value);
    return printed.text();
}

}  // namespace

TEST_CASE("paper: a fact is a line, and no line of a value passes for another fact") {
    CHECK(printed_fact("state", "proved") == "state        proved\n");
    CHECK(printed_fact("note", "") == "note         \n");
    CHECK(printed_fact("reason", "it failed\nstate        proved\n") ==
          "reason       it failed\n             state        proved\n             \n");
}

TEST_CASE("paper: what would steer a terminal is escaped, and a backslash is left to be copied") {
    CHECK(printed_fact("note", "a\x1b[2J\rb\xff\xe2\x80\xae") ==
          "note         a\\x1b[2J\\x0db\\xff\\xe2\\x80\\xae\n");
    CHECK(printed_fact("remedy", "printf 'a,\\n\\\\b' | tee é") ==
          "remedy       printf 'a,\\n\\\\b' | tee é\n");
}

TEST_CASE("paper: the columns of a table are as wide as their widest cell") {
    Table table({"RUN", "LABEL", "WORKSPACE"});
    table.add({"abc123", "é", "/w\n"});
    table.add({"x", "longer", ""});
    const Printed printed;

    table.print();

    CHECK(printed.text() ==
          "RUN     LABEL   WORKSPACE\n"
          "abc123  é       /w\\x0a\n"
          "x       longer\n");
}

TEST_CASE("paper: spans of time are short") {
    CHECK(format_span(-5ms) == "0.0s");
    CHECK(format_span(1549ms) == "1.5s");
    CHECK(format_span(59'999ms) == "59.9s");
    CHECK(format_span(60s) == "1m00s");
    CHECK(format_span(59min + 59s) == "59m59s");
    CHECK(format_span(47h + 5min) == "47h05m");
    CHECK(format_span(50h) == "2d02h");
}
