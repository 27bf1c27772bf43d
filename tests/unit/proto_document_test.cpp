// SPDX-License-Identifier: MIT
// The documents of the protocol against the code: what they show is what the codec does.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "proto/codec.hpp"
#include "tests/support/programs.hpp"

using namespace mechad;

namespace {

std::string read_proto(const std::string& name) {
    std::ifstream file(test::source_dir() + "/proto/" + name);
    REQUIRE_MESSAGE(file.is_open(), name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::vector<std::string> lines_of(const std::string& name) {
    std::istringstream text(read_proto(name));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    REQUIRE_FALSE(lines.empty());
    return lines;
}

JsonValue parse_proto(const std::string& name) {
    auto value = parse_json(read_proto(name));
    REQUIRE_MESSAGE(value.has_value(), value.error().message());
    return *std::move(value);
}

const JsonValue& at(const JsonValue& value, std::initializer_list<std::string_view> path) {
    const JsonValue* found = &value;
    for (const std::string_view name : path) {
        found = found->find(name);
        REQUIRE_MESSAGE(found != nullptr, name);
    }
    return *found;
}

std::set<std::string> member_names(const JsonValue& object) {
    std::set<std::string> names;
    for (const JsonMember& member : *object.get<JsonObject>()) names.insert(member.name);
    return names;
}

// The members that a decoder says it knows, from the hint of its refusal of another.
std::set<std::string> known_members(std::string_view method, bool is_call) {
    const std::string line = std::string(R"({"jsonrpc":"2.0",)") + (is_call ? R"("id":1,)" : "") +
                             R"("method":")" + std::string(method) + R"(","params":{"?":0}})";
    const std::string hint = decode_client_message(line).error().error().hint();
    std::istringstream text(hint.substr(hint.find(':') + 1));
    std::set<std::string> names;
    for (std::string name; std::getline(text >> std::ws, name, ',');) names.insert(name);
    return names;
}

void check_decodes_as_daemon_line(const std::string& line) {
    CAPTURE(line);
    const auto message = decode_daemon_message(line);
    REQUIRE(message.has_value());
    CHECK_FALSE(std::holds_alternative<UnknownMessage>(*message));
    if (const auto* const error = std::get_if<ErrorReply>(&*message)) {
        const auto kind = error_kind_from(error->kind);
        REQUIRE(kind.has_value());
        CHECK(code_of(*kind) == error->code);
        CHECK(error->message.ends_with("Nothing was executed.") == (error->executed == false));
    } else if (const auto* const reply = std::get_if<Reply>(&*message)) {
        CHECK((decode_exit_report(reply->result).has_value() ||
               decode_status_report(reply->result).has_value() ||
               decode_list_report(reply->result).has_value() ||
               decode_describe_report(reply->result).has_value() ||
               decode_preflight_report(reply->result).has_value() ||
               decode_kill_report(reply->result).has_value()));
    }
}

}  // namespace

TEST_CASE("documents: the table of errors is errors.json") {
    const JsonValue errors = parse_proto("errors.json");
    const std::vector<std::string> document = lines_of("PROTOCOL.md");
    const auto begin = std::ranges::find(document, "| kind | code | retry may help | meaning |");
    REQUIRE(begin != document.end());

    std::vector<std::string> expected;
    for (const JsonMember& kind : *at(errors, {"kinds"}).get<JsonObject>()) {
        const bool retryable = *at(kind.value, {"retryable"}).get<bool>();
        expected.push_back("| `" + kind.name + "` | " + to_json(at(kind.value, {"code"})) +
                           (retryable ? " | yes | " : " | no | ") +
                           *at(kind.value, {"summary"}).get<std::string>() + " |");
    }
    const std::vector<std::string> rows(begin + 2, std::find(begin, document.end(), ""));
    CHECK(rows == expected);
}

TEST_CASE("documents: the generated kinds are errors.json") {
    const JsonValue errors = parse_proto("errors.json");
    CHECK(at(errors, {"kinds"}).get<JsonObject>()->size() == error_kinds.size());
    for (const JsonMember& member : *at(errors, {"kinds"}).get<JsonObject>()) {
        const auto kind = error_kind_from(member.name);
        REQUIRE(kind.has_value());
        CHECK(to_string(*kind) == member.name);
        CHECK(code_of(*kind) == *at(member.value, {"code"}).get<std::int64_t>());
        CHECK(is_retryable(*kind) == *at(member.value, {"retryable"}).get<bool>());
    }
    CHECK_FALSE(error_kind_from("no_such_kind"));
}

TEST_CASE("documents: every example decodes, and every refused one does not") {
    for (const std::string& line : lines_of("examples/client.ndjson")) {
        CAPTURE(line);
        CHECK(decode_client_message(line).has_value());
    }
    for (const std::string& line : lines_of("examples/daemon.ndjson")) {
        check_decodes_as_daemon_line(line);
    }
    for (const std::string& line : lines_of("examples/refused.ndjson")) {
        CAPTURE(line);
        CHECK_FALSE(decode_client_message(line).has_value());
    }
}

TEST_CASE("documents: every exchange shown in PROTOCOL.md decodes") {
    const std::string to_daemon = "→ ";
    const std::string to_client = "← ";
    std::size_t count = 0;
    for (const std::string& line : lines_of("PROTOCOL.md")) {
        if (line.starts_with(to_daemon)) {
            CAPTURE(line);
            CHECK(decode_client_message(line.substr(to_daemon.size())).has_value());
        } else if (line.starts_with(to_client)) {
            check_decodes_as_daemon_line(line.substr(to_client.size()));
        } else {
            continue;
        }
        ++count;
    }
    CHECK(count >= 10);
}

TEST_CASE("documents: the client's schema has the members that the decoder knows") {
    const JsonValue schema = parse_proto("v1/client.schema.json");
    const auto schema_members = [&schema](std::string_view shape) {
        return member_names(at(schema, {"$defs", shape, "properties"}));
    };
    CHECK(schema_members("spawn_params") == known_members("spawn", true));
    CHECK(schema_members("describe_params") == known_members("describe", true));
    CHECK(schema_members("list_params") == known_members("list", true));
    CHECK(schema_members("kill_params") == known_members("kill", true));
    CHECK(schema_members("stdin_params") == known_members("stdin", false));
    CHECK(schema_members("signal_params") == known_members("signal", false));
}

TEST_CASE("documents: the daemon's schema has the members that the encoder writes") {
    const JsonValue schema = parse_proto("v1/daemon.schema.json");
    const auto check_members = [&](std::string line, std::string_view shape,
                                   std::string_view part) {
        CAPTURE(shape);
        line.pop_back();
        const auto message = parse_json(line);
        REQUIRE(message.has_value());
        CHECK(member_names(at(*message, {part})) ==
              member_names(at(schema, {"$defs", shape, "properties", part, "properties"})));
    };
    check_members(encode_started({}), "started", "params");
    check_members(encode_changed({}), "changed", "params");
    check_members(encode_result(1, ExitReport{}), "exit_result", "result");
    check_members(encode_result(1, DescribeReport{}), "describe_result", "result");
    check_members(encode_result(1, StatusReport{}), "status_result", "result");
    // A recheck's result is the same shape as status has it.
    const auto recheck = parse_json(encode_result(
        1, PreflightReport{.reason = "r", .remedy = "m", .finished_unix_s = 1, .probes = {}}));
    REQUIRE(recheck.has_value());
    CHECK(member_names(at(*recheck, {"result"})) ==
          member_names(at(schema, {"$defs", "preflight", "properties"})));
    check_members(encode_result(1, ListReport{{}, std::vector<EndedRun>{}}), "list_result",
                  "result");
    check_members(encode_result(1, KillReport{}), "kill_result", "result");
}

TEST_CASE("documents: the daemon's schema lists the kinds of errors.json") {
    const JsonValue schema = parse_proto("v1/daemon.schema.json");
    std::set<std::string> kinds;
    for (const JsonValue& kind : *at(schema, {"$defs", "error_kind", "enum"}).get<JsonArray>()) {
        kinds.insert(*kind.get<std::string>());
    }
    const JsonValue errors = parse_proto("errors.json");
    CHECK(kinds == member_names(at(errors, {"kinds"})));
}
