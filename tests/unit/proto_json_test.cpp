// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "proto/json_value.hpp"
#include "proto/messages.hpp"

using namespace mechad;

namespace {

std::string nested_arrays(std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
}

std::string message_of(std::string_view text) {
    const auto value = parse_json(text);
    return value ? std::string("(parsed)") : value.error().message();
}

}  // namespace

TEST_CASE("json: what is parsed prints as the same text, in the same order") {
    for (const std::string_view text :
         {R"({"b":1,"a":[true,false,null,-7,"é\n"],"c":{}})", "[]", "0", "-9223372036854775808",
          "18446744073709551615", "1.5", R"("")"}) {
        const auto value = parse_json(text);
        REQUIRE(value.has_value());
        CHECK(to_json(*value) == text);
    }
}

TEST_CASE("json: only numbers written as integers are integers") {
    CHECK(parse_json("1")->get<std::int64_t>() != nullptr);
    CHECK(parse_json("9223372036854775807")->get<std::int64_t>() != nullptr);
    CHECK(parse_json("9223372036854775808")->get<std::uint64_t>() != nullptr);
    for (const std::string_view text : {"1.0", "1e3", "1E0", "18446744073709551616", "1e999"}) {
        CAPTURE(text);
        CHECK(parse_json(text)->get<double>() != nullptr);
    }
}

TEST_CASE("json: long strings and keys are read whole") {
    const std::string name(70000, 'k');
    const std::string text(70000, 'v');
    const auto value = parse_json("{\"" + name + "\":\"" + text + "\\n\"}");
    REQUIRE(value.has_value());
    REQUIRE(value->find(name) != nullptr);
    CHECK(*value->find(name)->get<std::string>() == text + "\n");
}

TEST_CASE("json: the depth limit is exact") {
    CHECK(parse_json(nested_arrays(json_depth_max)).has_value());
    CHECK(message_of(nested_arrays(json_depth_max + 1)) == "the line nests deeper than 16 levels");
    CHECK_FALSE(parse_json(nested_arrays(500000)).has_value());
}

TEST_CASE("json: malformed text is refused with a reason") {
    CHECK(message_of("\xEF\xBB\xBF{}") == "the line begins with a byte order mark");
    CHECK(message_of("{\"a\":\"\xFF\"}") == "the line is not valid UTF-8 (at byte 6)");
    CHECK(message_of("{} {}") == "something follows the JSON text (at byte 3)");
    for (const std::string_view text :
         {"",       " ",        "{",    "{\"a\":1,}", "[1,]",        "{'a':1}",
          "{a:1}",  "01",       "+1",   ".5",         "1.",          "nul",
          "NaN",    "Infinity", "\"a",  "\"\\x\"",    "\"\\ud800\"", "\"\\udc00\\ud800\"",
          "\"\t\"", "// c\n{}", "{}//", "{}x",        "\"\\u12\""}) {
        CAPTURE(text);
        const auto value = parse_json(text);
        REQUIRE_FALSE(value.has_value());
        CHECK(value.error().kind() == ErrorKind::parse_error);
    }
    CHECK_FALSE(parse_json(std::string_view("{}\0", 3)).has_value());
}

TEST_CASE("json: duplicate keys are found at any depth, by path") {
    const auto field_of = [](std::string_view text) {
        const auto fault = find_duplicate_key(*parse_json(text));
        return fault ? fault->field() : std::string("(none)");
    };
    CHECK(field_of(R"({"a":1,"b":{"a":1}})") == "(none)");
    CHECK(field_of(R"({"a":1,"a":2})") == "a");
    CHECK(field_of(R"({"params":{"env":{"X":"1","Y":"2","X":"3"}}})") == "env.X");
    CHECK(field_of(R"({"a":[0,{"b":1,"\u0062":2}]})") == "a[1].b");
}

TEST_CASE("json: a NUL is found in strings and in keys, by path") {
    const auto field_of = [](std::string_view text) {
        const auto fault = find_nul(*parse_json(text));
        return fault ? fault->field() : std::string("(none)");
    };
    CHECK(field_of(R"({"a":"b"})") == "(none)");
    CHECK(field_of(R"({"a":["b","c\u0000"]})") == "a[1]");
    CHECK(field_of(R"({"params":{"env":{"A\u0000":"x"}}})") == std::string("env.A\0", 6));
}

TEST_CASE("json: a path shows at most the beginning of a long name") {
    const std::string path = member_path("env", std::string(100000, 'x'));
    CHECK(path.size() < 200);
    CHECK(path.starts_with("env.xxx"));
    CHECK(path.ends_with("…"));
}
