// SPDX-License-Identifier: MIT
#include "client/channel.hpp"

#include <doctest/doctest.h>
#include <poll.h>

#include <vector>

#include "tests/unit/client_fixture.hpp"

using namespace mechad;
using client::Channel;

namespace {

std::vector<std::string> take_lines(Channel& channel) {
    std::vector<std::string> lines;
    while (const auto line = channel.take_line()) lines.emplace_back(*line);
    return lines;
}

}  // namespace

TEST_CASE("channel: any split of the bytes gives the same lines") {
    const std::string bytes = "first\n\nthird, longer\nfour\n";
    const std::vector<std::string> lines = {"first", "", "third, longer", "four"};
    for (std::size_t split = 0; split <= bytes.size(); ++split) {
        auto [own, daemon] = make_connection();
        Channel channel(std::move(own));
        std::vector<std::string> got;

        say(daemon, bytes.substr(0, split));
        channel.exchange();
        got = take_lines(channel);
        say(daemon, bytes.substr(split));
        channel.exchange();
        for (auto& line : take_lines(channel)) got.push_back(std::move(line));

        CHECK(got == lines);
        CHECK(channel.waiting_bytes() == 0);
    }
}

TEST_CASE("channel: what came before the end is read, an unfinished line is not a line") {
    auto [own, daemon] = make_connection();
    Channel channel(std::move(own));

    say(daemon, "whole\nhalf");
    daemon.reset();
    REQUIRE(channel.wait(client::never));
    CHECK(!channel.is_receive_over());
    CHECK(take_lines(channel) == std::vector<std::string>{"whole"});

    REQUIRE(channel.wait(client::never));
    CHECK(channel.is_receive_over());
    CHECK(take_lines(channel).empty());
}

TEST_CASE("channel: waiting ends when the time has passed") {
    auto [own, daemon] = make_connection();
    Channel channel(std::move(own));

    CHECK(!channel.wait(client::in(std::chrono::milliseconds(0))));
    CHECK(!channel.wait(client::in(std::chrono::milliseconds(5))));
    CHECK(!channel.wait(client::Time::min()));
    say(daemon, "x\n");
    CHECK(channel.wait(client::in(std::chrono::milliseconds(0))));
}

TEST_CASE("channel: a peer that reads nothing does not keep its words from arriving") {
    auto [own, daemon] = make_connection();
    Channel channel(std::move(own));

    channel.send(std::string(std::size_t{4} << 20, 'x'));
    const std::size_t unsent = channel.unsent_bytes();
    say(daemon, "still here\n");
    REQUIRE(channel.wait(client::never));

    CHECK(unsent > 0);
    CHECK(channel.unsent_bytes() == unsent);
    CHECK(take_lines(channel) == std::vector<std::string>{"still here"});
}

TEST_CASE("channel: what cannot be sent any more counts as unsent, and the answer is still read") {
    auto [own, daemon] = make_connection();
    Channel channel(std::move(own));

    say(daemon, "refused\n");
    daemon.reset();
    channel.send("question\n");
    channel.exchange();

    CHECK(channel.is_send_over());
    CHECK(channel.unsent_bytes() == 9);
    CHECK(channel.wanted_events() == POLLIN);
    CHECK(take_lines(channel) == std::vector<std::string>{"refused"});
}
