// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "proto/codec.hpp"

using namespace mechad;
using namespace std::chrono_literals;

namespace {

std::string spawn_line(std::string_view params) {
    return R"({"jsonrpc":"2.0","id":7,"method":"spawn","params":)" + std::string(params) + "}";
}

SpawnParams decode_spawn(std::string_view params) {
    const auto message = decode_client_message(spawn_line(params));
    REQUIRE_MESSAGE(message.has_value(), message.error().error().message());
    const auto& call = std::get<Call>(*message);
    CHECK(call.id == RequestId(7));
    return std::get<SpawnParams>(call.params);
}

ClientMessage decode(std::string_view line) {
    const auto message = decode_client_message(line);
    REQUIRE_MESSAGE(message.has_value(), message.error().error().message());
    return *message;
}

ClientMessage round_trip(const Call& call) {
    std::string line = encode_call(call);
    REQUIRE(line.ends_with('\n'));
    line.pop_back();
    return decode(line);
}

SpawnParams full_spawn() {
    SpawnParams spawn;
    spawn.argv = {"node", "", "caf\xE9", "é \"x\"\n"};
    spawn.workspace = "/home/u/p \xFF\n";
    spawn.cwd = "sub/dir";
    spawn.network = false;
    spawn.env = {{"A", ""}, {"NAME", "value\xFE"}};
    spawn.stdin_spec = StdinInline{std::string("a\0b", 3)};
    spawn.timeout = 60000ms;
    spawn.output_limit_bytes = 1048576;
    spawn.on_output_limit = OnOutputLimit::kill;
    spawn.label = "pytest é";
    return spawn;
}

}  // namespace

TEST_CASE("request: a spawn with only what is required takes every default") {
    const SpawnParams spawn = decode_spawn(R"({"command":"make -j4","workspace":"/w"})");

    SpawnParams expected;
    expected.command = "make -j4";
    expected.workspace = "/w";
    CHECK(spawn == expected);
}

TEST_CASE("request: every member of a spawn is read") {
    const SpawnParams spawn = decode_spawn(
        R"({"argv":["node","server.js",""],"workspace":{"base64":"L3ev"},"cwd":"sub",)"
        R"("network":true,"env":{"A":"1","B":{"base64":"/w=="}},"stdin":"stream","timeout_ms":1,)"
        R"("output_limit_bytes":0,"on_output_limit":"kill","label":"é"})");

    SpawnParams expected;
    expected.argv = {"node", "server.js", ""};
    expected.workspace = "/w\xAF";
    expected.cwd = "sub";
    expected.network = true;
    expected.env = {{"A", "1"}, {"B", "\xFF"}};
    expected.stdin_spec = StdinStream{};
    expected.timeout = 1ms;
    expected.output_limit_bytes = 0;
    expected.on_output_limit = OnOutputLimit::kill;
    expected.label = "é";
    CHECK(spawn == expected);
}

TEST_CASE("request: each form of stdin is read") {
    const auto stdin_of = [](std::string_view form) {
        return decode_spawn(R"({"command":"cat","workspace":"/w","stdin":)" + std::string(form) +
                            "}")
            .stdin_spec;
    };
    CHECK(stdin_of(R"("null")") == StdinSpec(StdinNull{}));
    CHECK(stdin_of(R"("stream")") == StdinSpec(StdinStream{}));
    CHECK(stdin_of(R"({"text":"a\n"})") == StdinSpec(StdinInline{"a\n"}));
    CHECK(stdin_of(R"({"base64":"AGE="})") == StdinSpec(StdinInline{std::string("\0a", 2)}));
}

TEST_CASE("request: a describe has every member of a spawn but the program") {
    const auto message = decode(
        R"({"jsonrpc":"2.0","id":7,"method":"describe","params":{"workspace":{"base64":"L3ev"},)"
        R"("cwd":"sub","network":false,"env":{"A":"1"},"stdin":"stream","timeout_ms":1,)"
        R"("output_limit_bytes":0,"on_output_limit":"kill","label":"x"}})");

    DescribeParams expected;
    expected.spawn.workspace = "/w\xAF";
    expected.spawn.cwd = "sub";
    expected.spawn.network = false;
    expected.spawn.env = {{"A", "1"}};
    expected.spawn.stdin_spec = StdinStream{};
    expected.spawn.timeout = 1ms;
    expected.spawn.output_limit_bytes = 0;
    expected.spawn.on_output_limit = OnOutputLimit::kill;
    expected.spawn.label = "x";
    CHECK(message == ClientMessage(Call{7, expected}));
}

TEST_CASE("request: passed descriptors and a tty go together") {
    const SpawnParams spawn =
        decode_spawn(R"({"argv":["sh"],"workspace":"/w","stdio":"fds","tty":true})");
    CHECK(spawn.stdio == StdioMode::fds);
    CHECK(spawn.tty);
}

TEST_CASE("request: control calls and notifications are read") {
    const auto meant = [](std::string_view members) {
        return decode(R"({"jsonrpc":"2.0",)" + std::string(members) + "}");
    };
    const auto is_call = [](const ClientMessage& message, const Call& call) {
        return message == ClientMessage(call);
    };
    CHECK(is_call(meant(R"("id":"a","method":"status")"), {"a", StatusParams{}}));
    CHECK(is_call(meant(R"("id":-1,"method":"list","params":{})"), {-1, ListParams{}}));
    CHECK(is_call(meant(R"("id":-1,"method":"list","params":{"recent":true})"),
                  {-1, ListParams{.recent = true}}));
    CHECK(is_call(meant(R"("id":1,"method":"recheck")"), {1, RecheckParams{}}));
    CHECK(
        is_call(meant(R"("id":0,"method":"kill","params":{"run":"r"})"), {0, KillParams{"r", {}}}));
    CHECK(is_call(meant(R"("id":0,"method":"kill","params":{"run":"r","signal":"SIGUSR1"})"),
                  {0, KillParams{"r", 10}}));
    CHECK(meant(R"("method":"stdin","params":{"text":"hi\n"})") ==
          ClientMessage(StdinMessage{"hi\n", false}));
    CHECK(meant(R"("method":"stdin","params":{"base64":"AA=="})") ==
          ClientMessage(StdinMessage{std::string(1, '\0'), false}));
    CHECK(meant(R"("method":"stdin","params":{"eof":true})") ==
          ClientMessage(StdinMessage{"", true}));
    CHECK(meant(R"("method":"signal","params":{"signal":"SIGWINCH"})") ==
          ClientMessage(SignalMessage{28}));
}

TEST_CASE("request: what the client library writes is read as it was meant") {
    CHECK(round_trip({1, full_spawn()}) == ClientMessage(Call{1, full_spawn()}));

    SpawnParams small;
    small.command = "echo \"hi\" \xFF";
    small.workspace = "/w";
    small.stdin_spec = StdinInline{"plain \"text\"\n"};
    CHECK(round_trip({"id \"1\"", small}) == ClientMessage(Call{"id \"1\"", small}));

    SpawnParams passed;
    passed.argv = {"sh"};
    passed.workspace = "/w";
    passed.stdio = StdioMode::fds;
    passed.tty = true;
    CHECK(round_trip({2, passed}) == ClientMessage(Call{2, passed}));

    CHECK(round_trip({3, StatusParams{}}) == ClientMessage(Call{3, StatusParams{}}));
    CHECK(round_trip({4, ListParams{}}) == ClientMessage(Call{4, ListParams{}}));
    CHECK(round_trip({4, ListParams{true}}) == ClientMessage(Call{4, ListParams{true}}));
    CHECK(round_trip({7, RecheckParams{}}) == ClientMessage(Call{7, RecheckParams{}}));
    DescribeParams describe{full_spawn()};
    describe.spawn.argv.reset();
    CHECK(round_trip({8, describe}) == ClientMessage(Call{8, describe}));
    CHECK(round_trip({5, KillParams{"r", {}}}) == ClientMessage(Call{5, KillParams{"r", {}}}));
    CHECK(round_trip({6, KillParams{"r", 9}}) == ClientMessage(Call{6, KillParams{"r", 9}}));
}

TEST_CASE("request: streamed input of any bytes arrives whole, in order, in short lines") {
    std::string bytes;
    for (int i = 0; i < 200000; ++i) bytes += i % 50000 < 40000 ? "é\n" : "\xFF";

    std::string lines;
    append_stdin(bytes, lines);
    lines += encode_stdin_eof();
    lines += encode_signal(2);

    std::string received;
    std::string_view rest(lines);
    ClientMessage last;
    ClientMessage before_last;
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        REQUIRE(end < daemon_line_bytes_max);
        before_last = std::exchange(last, decode(rest.substr(0, end)));
        if (const auto* const part = std::get_if<StdinMessage>(&last)) received += part->bytes;
        rest.remove_prefix(end + 1);
    }
    CHECK(received == bytes);
    CHECK(before_last == ClientMessage(StdinMessage{"", true}));
    CHECK(last == ClientMessage(SignalMessage{2}));
}

TEST_CASE("request: no bytes of input make no line") {
    std::string lines;
    append_stdin("", lines);
    CHECK(lines.empty());
}

TEST_CASE("request: the limits are exact") {
    const auto spawn_with = [](const std::string& members) {
        return decode_client_message(spawn_line(R"({"workspace":"/w",)" + members + "}"));
    };
    const auto argv_of = [](std::size_t count) {
        std::string argv = R"("argv":["x")";
        for (std::size_t i = 1; i < count; ++i) argv += R"(,"")";
        return argv + "]";
    };
    const auto env_of = [](std::size_t count) {
        std::string env = R"("command":"x","env":{"N":"")";
        for (std::size_t i = 1; i < count; ++i) env += ",\"N" + std::to_string(i) + "\":\"\"";
        return env + "}";
    };
    const auto command_of = [](std::size_t size) {
        return R"("command":")" + std::string(size, 'x') + "\"";
    };
    CHECK(spawn_with(argv_of(argv_count_max)).has_value());
    CHECK_FALSE(spawn_with(argv_of(argv_count_max + 1)).has_value());
    CHECK(spawn_with(env_of(env_count_max)).has_value());
    CHECK_FALSE(spawn_with(env_of(env_count_max + 1)).has_value());
    CHECK(spawn_with(command_of(exec_string_bytes_max - 1)).has_value());
    CHECK_FALSE(spawn_with(command_of(exec_string_bytes_max)).has_value());

    std::string line = spawn_line(R"({"command":"x","workspace":"/w"})");
    line.resize(request_line_bytes_max, ' ');
    CHECK(decode_client_message(line).has_value());
    CHECK_FALSE(decode_client_message(line + " ").has_value());
}
