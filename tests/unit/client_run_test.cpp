// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "proto/codec.hpp"
#include "tests/unit/client_fixture.hpp"

using namespace mechad;
using client::Executed;
using Kind = client::ErrorKind;

namespace {

SpawnParams with_streamed_input() {
    SpawnParams spawn;
    spawn.argv = {"cat"};
    spawn.workspace = "/w";
    spawn.stdin_spec = StdinStream{};
    return spawn;
}

// The bytes that the lines of a client bring for stdin, and whether its end is among them.
struct HeardInput {
    std::string bytes;
    bool has_ended = false;
};

HeardInput input_in(const std::string& lines) {
    HeardInput heard;
    for (std::size_t begin = 0; begin < lines.size();) {
        const std::size_t end = lines.find('\n', begin);
        const auto message = decode_client_message(lines.substr(begin, end - begin));
        REQUIRE(message.has_value());
        const auto* const input = std::get_if<StdinMessage>(&*message);
        REQUIRE(input != nullptr);
        heard.bytes += input->bytes;
        heard.has_ended = heard.has_ended || input->eof;
        begin = end + 1;
    }
    return heard;
}

}  // namespace

TEST_CASE("client run: messages come in the daemon's order, and those of later versions do not") {
    PlayedRun played;
    played.play(started_line);
    played.play("{\"jsonrpc\":\"2.0\",\"method\":\"novelty\",\"params\":{\"x\":1}}\n");
    played.play(output_line);
    played.play(result_line);

    const auto first = played.run.take();
    REQUIRE(first.has_value());
    CHECK(std::get<Started>(*first).run == "r1");
    const auto second = played.run.take();
    REQUIRE(second.has_value());
    CHECK(std::get<Output>(*second) == Output{OutputStream::err, "hey"});
    const auto last = played.run.take();
    REQUIRE(last.has_value());
    CHECK(std::get<ExitReport>(*last).exit_code == 3);
    CHECK(played.run.is_over());
    CHECK(!played.run.take().has_value());
}

TEST_CASE("client run: a refusal says that nothing ran, with all that the daemon says of it") {
    PlayedRun played;
    played.play(refusal_line);

    const auto error = error_of([&] { (void)played.run.take(); });
    CHECK(error.kind() == Kind::policy_denied);
    CHECK(error.executed() == Executed::no);
    CHECK(std::string(error.what()) == "No. Nothing was executed.");
    CHECK(error.field() == "network");
    CHECK(error.hint() == "ask");
}

TEST_CASE("client run: a kind of a later version keeps its name and is not retryable") {
    PlayedRun played;
    played.play(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32099,"message":"x","data":)"
                R"({"kind":"eclipse","executed":false}}})"
                "\n");

    const auto error = error_of([&] { (void)played.run.take(); });
    CHECK(error.kind() == Kind::unrecognized);
    CHECK(error.kind_name() == "eclipse");
    CHECK(!error.is_retryable());
    CHECK(error.executed() == Executed::no);
}

TEST_CASE("client run: a kind of the library's own is not taken from the wire") {
    PlayedRun played;
    played.play(
        R"({"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","data":{"kind":"deadline"}}})"
        "\n");

    CHECK(error_of([&] { (void)played.run.take(); }).kind() == Kind::unrecognized);
}

TEST_CASE("client run: what became of the command is told apart when the connection ends") {
    SUBCASE("before the request was taken whole") {
        SpawnParams large = with_streamed_input();
        large.argv = {"echo", std::string(std::size_t{8} << 20, 'x')};
        PlayedRun played(large);
        played.daemon.reset();
        played.run.exchange();
        played.run.exchange();
        CHECK(error_of([&] { (void)played.run.take(); }).executed() == Executed::no);
    }
    SUBCASE("before an answer") {
        PlayedRun played;
        (void)hear(played.daemon);
        played.daemon.reset();
        played.run.exchange();
        const auto error = error_of([&] { (void)played.run.take(); });
        CHECK(error.executed() == Executed::unknown);
        CHECK(std::string(error.what()).find("Nothing was executed") == std::string::npos);
    }
    SUBCASE("after the start") {
        PlayedRun played;
        played.play(started_line);
        REQUIRE(played.run.take().has_value());
        played.daemon.reset();
        played.run.exchange();
        const auto error = error_of([&] { (void)played.run.take(); });
        CHECK(error.kind() == Kind::connection_lost);
        CHECK(error.executed() == Executed::yes);
    }
}

TEST_CASE("client run: after the start no error takes back that the command ran") {
    PlayedRun played;
    played.play(started_line);
    played.play(refusal_line);

    REQUIRE(played.run.take().has_value());
    CHECK(error_of([&] { (void)played.run.take(); }).executed() == Executed::yes);
}

TEST_CASE("client run: what breaks the order of the protocol is not believed") {
    PlayedRun played;
    SUBCASE("output before the start") { played.play(output_line); }
    SUBCASE("a result before the start") { played.play(result_line); }
    SUBCASE("a second start") {
        played.play(started_line);
        REQUIRE(played.run.take().has_value());
        played.play(started_line);
    }
    SUBCASE("a result for somebody else") {
        played.play(started_line);
        REQUIRE(played.run.take().has_value());
        played.play(R"({"jsonrpc":"2.0","id":2,"result":{"exit":{"code":0}}})"
                    "\n");
    }
    SUBCASE("a result without an exit") {
        played.play(started_line);
        REQUIRE(played.run.take().has_value());
        played.play(R"({"jsonrpc":"2.0","id":1,"result":{}})"
                    "\n");
    }
    SUBCASE("no JSON") { played.play("hello\n"); }

    const auto error = error_of([&] { (void)played.run.take(); });
    CHECK(error.kind() == Kind::bad_answer);
    CHECK(error.executed() != Executed::no);
    // It is the last word, and stays so.
    CHECK(played.run.is_over());
    CHECK(error_of([&] { (void)played.run.take(); }).kind() == Kind::bad_answer);
}

TEST_CASE("client run: input waits for the start, and its end follows it") {
    const std::string bytes = std::string(100000, 'a') + std::string("\0\xff", 2);
    PlayedRun played(with_streamed_input(), bytes);
    const std::string spawn_line = hear(played.daemon);
    played.run.exchange();
    CHECK(hear(played.daemon).empty());

    played.play(started_line);
    REQUIRE(played.run.take().has_value());
    std::string lines;
    for (std::string part = hear(played.daemon); !part.empty(); part = hear(played.daemon)) {
        lines += part;
        played.run.exchange();
    }

    CHECK(spawn_line.find("\"stdin\":\"stream\"") != std::string::npos);
    const HeardInput heard = input_in(lines);
    CHECK(heard.bytes == bytes);
    CHECK(heard.has_ended);
}

TEST_CASE("client run: input that is not read stops being taken, and output still arrives") {
    PlayedRun played(with_streamed_input());
    (void)hear(played.daemon);
    played.play(started_line);
    REQUIRE(played.run.take().has_value());

    const std::string chunk(client::RunChannel::input_bytes_max, 'x');
    std::size_t given = 0;
    while (played.run.takes_input()) given += played.run.give_input(chunk);
    played.play(output_line);

    CHECK(given > 0);
    const auto message = played.run.take();
    REQUIRE(message.has_value());
    CHECK(std::get<Output>(*message).bytes == "hey");
    CHECK(!played.run.takes_input());
    // And it goes on once the daemon reads.
    std::string lines;
    for (std::string part = hear(played.daemon); !part.empty(); part = hear(played.daemon)) {
        lines += part;
        played.run.exchange();
    }
    CHECK(input_in(lines).bytes.size() == given);
    CHECK(played.run.takes_input());
}
