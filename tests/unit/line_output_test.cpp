// SPDX-License-Identifier: MIT
#include "daemon/os/line_output.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/os/syscalls.hpp"
#include "tests/unit/result_printer.hpp"

using namespace mechad;

namespace {

std::string read_all(const os::Pipe& pipe) {
    REQUIRE(os::set_nonblocking(pipe.read_end.get()));
    std::string text(1 << 20, '\0');
    const ssize_t size = ::read(pipe.read_end.get(), text.data(), text.size());
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return text;
}

}  // namespace

TEST_CASE("line output: a pipe that nobody reads takes what it can, and more when it is read") {
    mode_t mode = 0600;
    SUBCASE("that can be opened anew") {}
    SUBCASE("that cannot, except by root") { mode = 0; }
    auto pipe = os::make_pipe().value();
    REQUIRE(::fchmod(pipe.write_end.get(), mode) == 0);
    REQUIRE(::fcntl(pipe.write_end.get(), F_SETPIPE_SZ, 16384) == 16384);
    os::LineOutput output(pipe.write_end.get());
    const std::string line = std::string(99, 'x') + "\n";

    std::size_t taken = 0;
    while (taken < 1000 && output.write(line)) ++taken;

    CHECK(taken > 100);  // poll(2) calls it full when no page is empty
    CHECK_FALSE(output.write(line));
    CHECK(read_all(pipe).size() == taken * line.size());
    CHECK(output.write(line));
    CHECK(read_all(pipe) == line);
    CHECK((::fcntl(pipe.write_end.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("line output: what is longer than a pipe takes at once is cut, and marked") {
    auto pipe = os::make_pipe().value();
    os::LineOutput output(pipe.write_end.get());

    CHECK(output.write(std::string(10000, 'x') + "\n"));

    CHECK(read_all(pipe) == std::string(PIPE_BUF - 4, 'x') + "...\n");
}

TEST_CASE("line output: a file takes a line of any length") {
    auto file = os::make_memfd("lines", "").value();
    os::LineOutput output(file.get());

    CHECK(output.write(std::string(10000, 'x') + "\n"));

    CHECK(::lseek(file.get(), 0, SEEK_END) == 10001);
}
