// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <vector>

#include "proto/codec.hpp"

using namespace mechad;

namespace {

struct Malformed {
    std::string name;
    std::string line;
    ErrorKind kind;
    std::string field;
};

using enum ErrorKind;

std::string call(std::string_view method, std::string_view params) {
    return R"({"jsonrpc":"2.0","id":7,"method":")" + std::string(method) + R"(","params":)" +
           std::string(params) + "}";
}

std::string notification(std::string_view method, std::string_view params) {
    return R"({"jsonrpc":"2.0","method":")" + std::string(method) + R"(","params":)" +
           std::string(params) + "}";
}

// A spawn that is right but for `members`.
std::string spawn(std::string_view members) {
    return call("spawn", R"({"command":"true","workspace":"/w",)" + std::string(members) + "}");
}

std::string spawn_argv(std::string_view argv) {
    return call("spawn", R"({"workspace":"/w","argv":)" + std::string(argv) + "}");
}

std::string big(std::size_t size) {
    std::string text(size + 2, 'x');
    text.front() = '"';
    text.back() = '"';
    return text;
}

std::string many_arguments() {
    std::string argv = "[\"x\"";
    for (std::size_t i = 0; i < argv_count_max; ++i) argv += ",\"\"";
    return argv + "]";
}

std::string many_variables() {
    std::string env = R"("env":{)";
    for (std::size_t i = 0; i <= env_count_max; ++i) {
        env += (i == 0 ? "\"N" : ",\"N") + std::to_string(i) + "\":\"\"";
    }
    return env + "}";
}

// Lines of which no id can be trusted.
std::vector<Malformed> broken_lines() {
    return {
        {"an empty line", "", parse_error, ""},
        {"white space", "  ", parse_error, ""},
        {"no JSON", "hello", parse_error, ""},
        {"half an object", R"({"jsonrpc":"2.0","id":7)", parse_error, ""},
        {"a batch", "[" + call("status", "{}") + "]", parse_error, ""},
        {"an empty batch", "[]", parse_error, ""},
        {"a string", R"("spawn")", parse_error, ""},
        {"a number", "7", parse_error, ""},
        {"null", "null", parse_error, ""},
        {"a second object", call("status", "{}") + call("status", "{}"), parse_error, ""},
        {"trailing text", call("status", "{}") + " x", parse_error, ""},
        {"a trailing NUL", call("status", "{}") + std::string(1, '\0'), parse_error, ""},
        {"a byte order mark", "\xEF\xBB\xBF" + call("status", "{}"), parse_error, ""},
        {"invalid UTF-8", spawn("\"label\":\"\xFF\""), parse_error, ""},
        {"overlong UTF-8", spawn("\"label\":\"\xC0\xAF\""), parse_error, ""},
        {"an encoded surrogate", spawn("\"label\":\"\xED\xA0\x80\""), parse_error, ""},
        {"a lone surrogate", spawn(R"("label":"\ud800")"), parse_error, ""},
        {"a reversed pair", spawn(R"("label":"\udc00\ud800")"), parse_error, ""},
        {"a raw control character", spawn("\"label\":\"\t\""), parse_error, ""},
        {"a comment", "/* x */" + call("status", "{}"), parse_error, ""},
        {"a trailing comma", call("status", "{,}"), parse_error, ""},
        {"too deep", call("spawn", std::string(17, '[') + std::string(17, ']')), parse_error, ""},
        {"far too deep", std::string(1000000, '['), parse_error, ""},
        {"a long line", std::string(request_line_bytes_max + 1, ' '), parse_error, ""},
        {"two ids", R"({"jsonrpc":"2.0","id":7,"id":8,"method":"status"})", parse_error, "id"},
        {"an id with a NUL", R"({"jsonrpc":"2.0","id":"\u0000","method":"status"})",
         invalid_request, "id"},
        {"a null id", R"({"jsonrpc":"2.0","id":null,"method":"status"})", invalid_request, "id"},
        {"a fractional id", R"({"jsonrpc":"2.0","id":1.0,"method":"status"})", invalid_request,
         "id"},
        {"an id beyond int64", R"({"jsonrpc":"2.0","id":9223372036854775808,"method":"status"})",
         invalid_request, "id"},
        {"a boolean id", R"({"jsonrpc":"2.0","id":true,"method":"status"})", invalid_request, "id"},
        {"a long id", R"({"jsonrpc":"2.0","id":)" + big(257) + R"(,"method":"status"})",
         invalid_request, "id"},
        {"a spawn without id", notification("spawn", R"({"command":"true","workspace":"/w"})"),
         invalid_request, "id"},
        {"a status without id", notification("status", "{}"), invalid_request, "id"},
        {"no member at all", "{}", invalid_request, "jsonrpc"},
        {"a stdin without params", R"({"jsonrpc":"2.0","method":"stdin"})", invalid_request,
         "params"},
        {"an empty stdin", notification("stdin", "{}"), invalid_request, "params"},
        {"a stdin of two forms", notification("stdin", R"({"text":"a","eof":true})"),
         invalid_request, "params"},
        {"a stdin that is no end", notification("stdin", R"({"eof":false})"), invalid_request,
         "eof"},
        {"a stdin of a number", notification("stdin", R"({"text":1})"), invalid_request, "text"},
        {"a stdin of bad base64", notification("stdin", R"({"base64":"YQ"})"), invalid_request,
         "base64"},
        {"a stdin with a NUL", notification("stdin", R"({"text":"\u0000"})"), invalid_request,
         "text"},
        {"a stdin with more", notification("stdin", R"({"text":"a","x":1})"), unknown_field, "x"},
        {"a signal of no name", notification("signal", "{}"), invalid_request, "signal"},
        {"a signal that is none", notification("signal", R"({"signal":"SIGNOPE"})"),
         invalid_request, "signal"},
        {"a signal by number", notification("signal", R"({"signal":2})"), invalid_request,
         "signal"},
        {"a signal in lower case", notification("signal", R"({"signal":"sigint"})"),
         invalid_request, "signal"},
    };
}

// Lines whose id, 7, must come back with the error.
std::vector<Malformed> bad_calls() {
    return {
        {"no jsonrpc", R"({"id":7,"method":"status"})", invalid_request, "jsonrpc"},
        {"another version", R"({"jsonrpc":"1.0","id":7,"method":"status"})", invalid_request,
         "jsonrpc"},
        {"a version as number", R"({"jsonrpc":2.0,"id":7,"method":"status"})", invalid_request,
         "jsonrpc"},
        {"no method", R"({"jsonrpc":"2.0","id":7})", invalid_request, "method"},
        {"a method that is no string", R"({"jsonrpc":"2.0","id":7,"method":1})", invalid_request,
         "method"},
        {"an unknown method", call("exec", "{}"), unknown_method, "method"},
        {"a method in upper case", call("Spawn", "{}"), unknown_method, "method"},
        {"describe of nothing", call("describe", "{}"), invalid_request, "workspace"},
        {"describe of a command", call("describe", R"({"workspace":"/w","command":"true"})"),
         unknown_field, "command"},
        {"describe of argv", call("describe", R"({"workspace":"/w","argv":["true"]})"),
         unknown_field, "argv"},
        {"describe with a tty of no terminal", call("describe", R"({"workspace":"/w","tty":true})"),
         invalid_request, "tty"},
        {"recheck of something", call("recheck", R"({"run":"r"})"), unknown_field, "run"},
        {"a reply", R"({"jsonrpc":"2.0","id":7,"result":{}})", unknown_field, "result"},
        {"one member too many", R"({"jsonrpc":"2.0","id":7,"method":"status","auth":"x"})",
         unknown_field, "auth"},
        {"positional params", call("status", "[]"), invalid_request, "params"},
        {"null params", call("status", "null"), invalid_request, "params"},
        {"params of status", call("status", R"({"verbose":true})"), unknown_field, "verbose"},
        {"params of list", call("list", R"({"all":true})"), unknown_field, "all"},
        {"a stdin with an id", call("stdin", R"({"text":"a"})"), invalid_request, "id"},
        {"a signal with an id", call("signal", R"({"signal":"SIGINT"})"), invalid_request, "id"},
        {"a kill of nothing", call("kill", "{}"), invalid_request, "run"},
        {"a kill of an empty name", call("kill", R"({"run":""})"), invalid_request, "run"},
        {"a kill of a number", call("kill", R"({"run":1})"), invalid_request, "run"},
        {"a kill of a long name", call("kill", "{\"run\":" + big(65) + "}"), invalid_request,
         "run"},
        {"a kill by no signal", call("kill", R"({"run":"r","signal":"9"})"), invalid_request,
         "signal"},
        {"a spawn without params", R"({"jsonrpc":"2.0","id":7,"method":"spawn"})", invalid_request,
         "command"},
        {"no program", call("spawn", R"({"workspace":"/w"})"), invalid_request, "command"},
        {"both programs", spawn(R"("argv":["true"])"), invalid_request, "argv"},
        {"an empty command", call("spawn", R"({"command":"","workspace":"/w"})"), invalid_request,
         "command"},
        {"a null command", call("spawn", R"({"command":null,"workspace":"/w"})"), invalid_request,
         "command"},
        {"a command with a NUL", call("spawn", R"({"command":"a\u0000b","workspace":"/w"})"),
         invalid_request, "command"},
        {"a command as list", call("spawn", R"({"command":["true"],"workspace":"/w"})"),
         invalid_request, "command"},
        {"a long command",
         call("spawn", "{\"workspace\":\"/w\",\"command\":" + big(exec_string_bytes_max) + "}"),
         invalid_request, "command"},
        {"an empty argv", spawn_argv("[]"), invalid_request, "argv"},
        {"an argv that is a string", spawn_argv(R"("true")"), invalid_request, "argv"},
        {"an empty program name", spawn_argv(R"(["","x"])"), invalid_request, "argv[0]"},
        {"an argument that is a number", spawn_argv(R"(["x","y","z",3])"), invalid_request,
         "argv[3]"},
        {"an argument with a NUL", spawn_argv(R"(["x","\u0000"])"), invalid_request, "argv[1]"},
        {"a hidden NUL", spawn_argv(R"(["x",{"base64":"YQBi"}])"), invalid_request,
         "argv[1].base64"},
        {"an argument of bad base64", spawn_argv(R"(["x",{"base64":"YR=="}])"), invalid_request,
         "argv[1].base64"},
        {"an argument of no form", spawn_argv(R"(["x",{}])"), invalid_request, "argv[1]"},
        {"an argument of another form", spawn_argv(R"(["x",{"text":"y"}])"), unknown_field,
         "argv[1].text"},
        {"a long argument", spawn_argv("[\"x\"," + big(exec_string_bytes_max) + "]"),
         invalid_request, "argv[1]"},
        {"too many arguments", spawn_argv(many_arguments()), invalid_request, "argv"},
        {"no workspace", call("spawn", R"({"command":"true"})"), invalid_request, "workspace"},
        {"an empty workspace", call("spawn", R"({"command":"true","workspace":""})"),
         invalid_request, "workspace"},
        {"a workspace with a NUL", call("spawn", R"({"command":"x","workspace":"/w\u0000/.."})"),
         invalid_request, "workspace"},
        {"an empty cwd", spawn(R"("cwd":"")"), invalid_request, "cwd"},
        {"a null cwd", spawn(R"("cwd":null)"), invalid_request, "cwd"},
        {"a network in quotes", spawn(R"("network":"false")"), invalid_request, "network"},
        {"a network of 0", spawn(R"("network":0)"), invalid_request, "network"},
        {"a null network", spawn(R"("network":null)"), invalid_request, "network"},
        {"a misspelt network", spawn(R"("netwrok":false)"), unknown_field, "netwrok"},
        {"two networks", spawn(R"("network":false,"network":true)"), parse_error, "network"},
        {"the same key, escaped", spawn(R"("network":false,"netw\u006frk":true)"), parse_error,
         "network"},
        {"an env that is a list", spawn(R"("env":["A=1"])"), invalid_request, "env"},
        {"a variable that is a number", spawn(R"("env":{"A":1})"), invalid_request, "env.A"},
        {"a null variable", spawn(R"("env":{"A":null})"), invalid_request, "env.A"},
        {"a variable without a name", spawn(R"("env":{"":"x"})"), invalid_request, "env"},
        {"a name with =", spawn(R"("env":{"A=B":"x"})"), invalid_request, "env.A=B"},
        {"a name with a NUL", spawn(R"("env":{"A\u0000":"x"})"), invalid_request,
         std::string("env.A\0", 6)},
        {"a variable with a NUL", spawn(R"("env":{"A":"\u0000"})"), invalid_request, "env.A"},
        {"the same variable twice", spawn(R"("env":{"A":"1","A":"2"})"), parse_error, "env.A"},
        {"a long variable", spawn("\"env\":{\"A\":" + big(exec_string_bytes_max - 2) + "}"),
         invalid_request, "env.A"},
        {"too many variables", spawn(many_variables()), invalid_request, "env"},
        {"an unknown stdin", spawn(R"("stdin":"inherit")"), invalid_request, "stdin"},
        {"a null stdin", spawn(R"("stdin":null)"), invalid_request, "stdin"},
        {"an empty stdin object", spawn(R"("stdin":{})"), invalid_request, "stdin"},
        {"a stdin of both forms", spawn(R"("stdin":{"text":"","base64":""})"), invalid_request,
         "stdin"},
        {"a stdin of another form", spawn(R"("stdin":{"file":"/etc/passwd"})"), unknown_field,
         "stdin.file"},
        {"an inline stdin of bad base64", spawn(R"("stdin":{"base64":"YQ=\n"})"), invalid_request,
         "stdin.base64"},
        {"an inline stdin with a NUL", spawn(R"("stdin":{"text":"\u0000"})"), invalid_request,
         "stdin.text"},
        {"an unknown stdio", spawn(R"("stdio":"pty")"), invalid_request, "stdio"},
        {"a stdin beside descriptors", spawn(R"("stdio":"fds","stdin":"null")"), invalid_request,
         "stdin"},
        {"a limit beside descriptors", spawn(R"("stdio":"fds","output_limit_bytes":1)"),
         invalid_request, "output_limit_bytes"},
        {"a reaction beside descriptors", spawn(R"("stdio":"fds","on_output_limit":"kill")"),
         invalid_request, "on_output_limit"},
        {"a tty in quotes", spawn(R"("tty":"true")"), invalid_request, "tty"},
        {"a tty without descriptors", spawn(R"("tty":true)"), invalid_request, "tty"},
        {"a timeout of 0", spawn(R"("timeout_ms":0)"), invalid_request, "timeout_ms"},
        {"a negative timeout", spawn(R"("timeout_ms":-1)"), invalid_request, "timeout_ms"},
        {"a fractional timeout", spawn(R"("timeout_ms":1.0)"), invalid_request, "timeout_ms"},
        {"a timeout with an exponent", spawn(R"("timeout_ms":1e3)"), invalid_request, "timeout_ms"},
        {"an infinite timeout", spawn(R"("timeout_ms":1e999)"), invalid_request, "timeout_ms"},
        {"a timeout of two years", spawn(R"("timeout_ms":63072000000)"), invalid_request,
         "timeout_ms"},
        {"a timeout beyond int64", spawn(R"("timeout_ms":9223372036854775808)"), invalid_request,
         "timeout_ms"},
        {"a timeout in quotes", spawn(R"("timeout_ms":"60000")"), invalid_request, "timeout_ms"},
        {"a negative limit", spawn(R"("output_limit_bytes":-1)"), invalid_request,
         "output_limit_bytes"},
        {"a limit beyond int64", spawn(R"("output_limit_bytes":9223372036854775808)"),
         invalid_request, "output_limit_bytes"},
        {"an unknown reaction", spawn(R"("on_output_limit":"ignore")"), invalid_request,
         "on_output_limit"},
        {"a long label", spawn("\"label\":" + big(label_bytes_max + 1)), invalid_request, "label"},
        {"a label with a newline", spawn(R"("label":"a\nb")"), invalid_request, "label"},
        {"a label with an escape", spawn(R"("label":"\u001b[2J")"), invalid_request, "label"},
        {"a label with a C1 control", spawn(R"("label":"\u009b2J")"), invalid_request, "label"},
        {"a label with DEL", spawn(R"("label":"\u007f")"), invalid_request, "label"},
        {"a label that is a number", spawn(R"("label":1)"), invalid_request, "label"},
    };
}

void check_refused(const Malformed& malformed, const std::optional<RequestId>& id) {
    CAPTURE(malformed.name);
    const auto message = decode_client_message(malformed.line);
    REQUIRE_FALSE(message.has_value());
    const DecodeFailure failure = message.error();
    CHECK(to_string(failure.error().kind()) == to_string(malformed.kind));
    CHECK(failure.error().field() == malformed.field);
    CHECK_FALSE(failure.error().message().empty());
    CHECK((failure.id() == id));
}

}  // namespace

TEST_CASE("malformed: a line without a trustworthy id is refused with its kind and field") {
    for (const Malformed& malformed : broken_lines()) check_refused(malformed, std::nullopt);
}

TEST_CASE("malformed: a bad call is refused with its kind, field and id") {
    for (const Malformed& malformed : bad_calls()) check_refused(malformed, RequestId(7));
}

TEST_CASE("malformed: an unknown member is answered with those that are known") {
    const auto message = decode_client_message(spawn(R"("netwrok":false)"));
    REQUIRE_FALSE(message.has_value());
    CHECK(message.error().error().hint() ==
          "known here: command, argv, workspace, cwd, network, env, stdin, stdio, tty, "
          "timeout_ms, output_limit_bytes, on_output_limit, label");
}

TEST_CASE("malformed: a call that takes no members says so") {
    for (const auto* method : {"recheck", "status"}) {
        const auto message = decode_client_message(call(method, R"({"x":1})"));
        REQUIRE_FALSE(message.has_value());
        CHECK(message.error().error().message() == "unknown member x");
        CHECK(message.error().error().hint() == "there are no members here: leave it out");
    }
}

TEST_CASE("malformed: a string id comes back as a string") {
    const auto message = decode_client_message(R"({"jsonrpc":"2.0","id":"é","method":"x"})");
    REQUIRE_FALSE(message.has_value());
    CHECK((message.error().id() == RequestId("é")));
}

TEST_CASE("malformed: the refusal of the worst line fits one line") {
    const std::string name(1000000, '\x7F');
    const auto message = decode_client_message(spawn("\"" + name + "\":1"));
    REQUIRE_FALSE(message.has_value());
    const std::string reply = encode_error(message.error().id(), message.error().error());
    CHECK(reply.size() < daemon_line_bytes_max);
}
