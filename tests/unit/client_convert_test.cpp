// SPDX-License-Identifier: MIT
#include "client/convert.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "proto/codec.hpp"
#include "tests/unit/client_fixture.hpp"

using namespace mechad;

TEST_CASE("client request: every member reaches the wire") {
    const client::SpawnRequest request{.command = "make",
                                       .workspace = "/w\xff",
                                       .cwd = "sub",
                                       .network = false,
                                       .input = client::FixedInput{std::string("\0in", 3)},
                                       .timeout = std::chrono::milliseconds(1500),
                                       .output_limit_bytes = 7,
                                       .at_output_limit = client::AtOutputLimit::kill,
                                       .label = "l",
                                       .env = {{"A", "1"}, {"B", "\xff"}}};

    const auto wire = client::to_wire(request);

    SpawnParams expected;
    expected.command = "make";
    expected.workspace = "/w\xff";
    expected.cwd = "sub";
    expected.network = false;
    expected.stdin_spec = StdinInline{std::string("\0in", 3)};
    expected.timeout = std::chrono::milliseconds(1500);
    expected.output_limit_bytes = 7;
    expected.on_output_limit = OnOutputLimit::kill;
    expected.label = "l";
    expected.env = {{"A", "1"}, {"B", "\xff"}};
    CHECK(wire.spawn == expected);
    CHECK(!wire.fixed_input.has_value());
}

TEST_CASE("client request: input that would not fit the request follows as a stream") {
    const client::SpawnRequest request{
        .argv = {"cat"}, .workspace = "/w", .input = client::FixedInput{std::string(2000000, 'x')}};

    const auto wire = client::to_wire(request);

    CHECK(std::holds_alternative<StdinStream>(wire.spawn.stdin_spec));
    REQUIRE(wire.fixed_input.has_value());
    CHECK(wire.fixed_input->size() == 2000000);
}

TEST_CASE("client request: text that JSON cannot say is refused, not altered") {
    SUBCASE("a label") {
        const auto error = error_of([] { (void)client::to_wire({.label = "\xff"}); });
        CHECK(error.kind() == client::ErrorKind::invalid_request);
        CHECK(error.field() == "label");
        CHECK(error.executed() == client::Executed::no);
        CHECK(std::string(error.what()) == "label is not valid UTF-8. Nothing was executed.");
    }
    SUBCASE("a variable's name") {
        const auto error = error_of([] { (void)client::to_wire({.env = {{"\xff", "v"}}}); });
        CHECK(error.field() == "env");
    }
}

TEST_CASE("client request: a description asks neither for the program nor for its input") {
    const auto wire = client::to_wire_description(
        {.argv = {"cat"}, .workspace = "/w", .input = client::StreamedInput{}, .label = "l"});

    SpawnParams expected;
    expected.workspace = "/w";
    expected.label = "l";
    CHECK(wire.spawn == expected);
}

TEST_CASE("client report: what is not understood reads as the worst") {
    const auto message = decode_daemon_message(
        R"({"jsonrpc":"2.0","method":"changed","params":{"capabilities":{"egress":"some"}}})");
    REQUIRE(message.has_value());

    const auto event = client::from_wire(client::RunMessage(std::get<Changed>(*message)));

    const auto& said = std::get<client::Changed>(event).capabilities;
    CHECK(said.egress == client::Egress::chosen);
    CHECK(said.can_reach_network);
    CHECK(said.reaches_beyond_workspace);
}

TEST_CASE("client report: an exit carries all that the daemon said") {
    mechad::ExitReport said;
    said.exit_signal = 9;
    said.reason = EndReason::oom;
    said.capabilities.egress = Egress::none;
    said.tree = TreeState::empty;
    said.truncated_stderr = true;
    said.stdout_bytes = 5;
    said.stderr_bytes = 6;
    said.usage = {std::chrono::milliseconds(1), std::chrono::milliseconds(2), 3};
    said.hints = {"h"};
    said.notes = {"n"};

    const auto event = client::from_wire(client::RunMessage(said));

    client::ExitReport expected;
    expected.signal = 9;
    expected.reason = client::EndReason::oom;
    expected.capabilities.egress = client::Egress::none;
    expected.tree = client::Tree::empty;
    expected.is_stderr_truncated = true;
    expected.stdout_bytes = 5;
    expected.stderr_bytes = 6;
    expected.wall = std::chrono::milliseconds(1);
    expected.cpu = std::chrono::milliseconds(2);
    expected.rss_kib_max = 3;
    expected.hints = {"h"};
    expected.notes = {"n"};
    CHECK(std::get<client::Ended>(event) == expected);
}

TEST_CASE("client errors: every kind of the daemon is one of the library's, retryable alike") {
    for (const ErrorKindRow& row : error_kinds) {
        const auto* const own =
            std::ranges::find(client::error_kinds, row.name, &client::ErrorKindRow::name);
        REQUIRE(own != client::error_kinds.end());
        CHECK(own->retryable == row.retryable);
        CHECK(client::to_string(own->kind) == row.name);
    }
}

TEST_CASE("client errors: only what certainly did not run says so, and says it once") {
    using client::Error;
    using client::ErrorKind;
    using client::Executed;

    CHECK(std::string(Error(ErrorKind::deadline, Executed::no, "late").what()) ==
          "late. Nothing was executed.");
    CHECK(std::string(
              Error(ErrorKind::overloaded, Executed::no, "x. Nothing was executed.").what()) ==
          "x. Nothing was executed.");
    CHECK(std::string(Error(ErrorKind::deadline, Executed::unknown, "late").what()) == "late");
    CHECK(std::string(Error(ErrorKind::deadline, Executed::yes, "late").what()) == "late");
}
