// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "proto/codec.hpp"
#include "proto/utf8.hpp"

using namespace mechad;
using namespace std::chrono_literals;

namespace {

DaemonMessage decode(std::string line) {
    REQUIRE(line.ends_with('\n'));
    CHECK_FALSE(find_invalid_utf8(line));
    line.pop_back();
    const auto message = decode_daemon_message(line);
    REQUIRE_MESSAGE(message.has_value(), message.error().message());
    return *message;
}

JsonValue result_of(const std::string& line, const RequestId& id) {
    const auto reply = std::get<Reply>(decode(line));
    CHECK((reply.id == id));
    return reply.result;
}

JsonValue json(std::string_view text) {
    const auto value = parse_json(text);
    REQUIRE(value.has_value());
    return *value;
}

Capabilities closed() {
    return {.egress = Egress::none, .can_reach_network = false, .reaches_beyond_workspace = false};
}

BoxReport closed_box() { return {"bwrap", true, false, {{"home", "hidden", {}}}, closed(), {"n"}}; }

StatusReport full_status() {
    StatusReport status;
    status.version = "0.1.0";
    status.features = {"spawn", "signal"};
    status.backend = "bwrap";
    status.backend_version = "0.8.0";
    status.confined = true;
    status.network_override = "allow";
    status.claims = {{"home", "hidden", {"home_canary"}},
                     {"network", "closed", {"tcp_listener", "udp_listener"}}};
    status.capabilities = closed();
    status.preflight = {
        PreflightState::failed,
        "why",
        "do this",
        1700000000,
        {{"home_canary", ProbeVerdict::leak, "read it"}, {"nonce", ProbeVerdict::proved, ""}}};
    status.runs_active = 3;
    status.runs_max = 256;
    status.limits = {90'000ms, 1048576, 64, 2000ms};
    status.policy_digest = "abc";
    status.config_path = "/etc/mechad/config.toml";
    status.socket_path = "/run/user/1/mechad/mechad.sock";
    status.env_absent = {"TOKEN"};
    status.notes = {"a note"};
    return status;
}

}  // namespace

TEST_CASE("reply: started comes back as it was said, without the proofs") {
    const Started started{"r1", 4242, closed_box()};

    CHECK(std::get<Started>(decode(encode_started(started))) == started);
}

TEST_CASE("reply: changed comes back as it was said") {
    const Changed changed{Capabilities{}, "an open run shares the workspace"};

    CHECK(std::get<Changed>(decode(encode_changed(changed))) == changed);
}

TEST_CASE("reply: an exit report comes back as it was said") {
    ExitReport report;
    report.exit_signal = 9;
    report.reason = EndReason::timeout;
    report.capabilities = closed();
    report.tree = TreeState::kill_pending;
    report.truncated_stderr = true;
    report.stdout_bytes = 18446744073709551615U;
    report.stderr_bytes = 1;
    report.usage = {812ms, 640ms, 1024};
    report.hints = {"h"};
    report.notes = {"n1", "n2"};

    const auto decoded = decode_exit_report(result_of(encode_result("id", report), "id"));
    REQUIRE(decoded.has_value());
    CHECK(*decoded == report);
}

TEST_CASE("reply: every reason, code and signal survives the wire") {
    for (const auto reason : {EndReason::exited, EndReason::signaled, EndReason::timeout,
                              EndReason::oom, EndReason::output_limit, EndReason::killed,
                              EndReason::cancelled, EndReason::daemon_stopping}) {
        for (int number = 0; number <= 255; ++number) {
            ExitReport report;
            report.reason = reason;
            report.exit_code = number;
            CHECK(*decode_exit_report(result_of(encode_result(1, report), 1)) == report);
            if (number == 0 || number > 64) continue;
            report.exit_code = 0;
            report.exit_signal = number;
            CHECK(*decode_exit_report(result_of(encode_result(1, report), 1)) == report);
        }
    }
}

TEST_CASE("reply: status, list and kill come back as they were said") {
    const auto status = decode_status_report(result_of(encode_result(1, full_status()), 1));
    REQUIRE(status.has_value());
    CHECK(*status == full_status());

    const ListReport runs{{{"r1", 7, "label", "/w \xFF\n", true, Egress::chosen, 1500ms, 10, 20},
                           {"r2", 8, "", "/w", false, Egress::none, 0ms, 0, 0}}};
    const auto list = decode_list_report(result_of(encode_result(2, runs), 2));
    REQUIRE(list.has_value());
    CHECK(*list == runs);

    CHECK_FALSE(list->recent.has_value());

    const auto killed = decode_kill_report(result_of(encode_result(3, KillReport{"r1"}), 3));
    REQUIRE(killed.has_value());
    CHECK(killed->run == "r1");
}

TEST_CASE("reply: what does not bound a run is absent from the limits, and stays so") {
    StatusReport status = full_status();
    status.limits = {.timeout = {}, .output_limit_bytes = {}, .tmp_mb = {}, .kill_grace = 1ms};

    const std::string line = encode_result(1, status);

    CHECK(line.find(R"("limits":{"kill_grace_ms":1})") != std::string::npos);
    CHECK(decode_status_report(result_of(line, 1))->limits == status.limits);
}

TEST_CASE("reply: recent runs come back as they were said, and one without an end does not") {
    const ListReport report{
        {},
        std::vector<EndedRun>{
            {"r2", "label", "/w \xFF", true, Egress::chosen, 0, 9, EndReason::timeout, 1500ms},
            {"r1", "", "/w", false, Egress::none, 3, 0, EndReason::exited, 2000ms}}};

    const auto list = decode_list_report(result_of(encode_result(2, report), 2));

    REQUIRE(list.has_value());
    CHECK(*list == report);
    CHECK(decode_list_report(json(R"({"runs":[],"recent":[]})"))->recent->empty());
    CHECK_FALSE(decode_list_report(json(R"({"runs":[],"recent":[{"run":"r"}]})")).has_value());
}

TEST_CASE("reply: a description comes back as it was said, binds in order") {
    const DescribeReport report{closed_box(),
                                {{"/data", Access::read_only},
                                 {"/cache \xFF", Access::read_write},
                                 {"/w", Access::read_write}}};

    const auto decoded = decode_describe_report(result_of(encode_result("d", report), "d"));

    REQUIRE(decoded.has_value());
    CHECK(*decoded == report);
}

TEST_CASE("reply: a recheck is answered by what status says of preflight") {
    const PreflightReport preflight = full_status().preflight;
    const JsonValue answer = result_of(encode_result(1, preflight), 1);

    const auto decoded = decode_preflight_report(answer);

    REQUIRE(decoded.has_value());
    CHECK(*decoded == preflight);
    const JsonValue status = result_of(encode_result(1, full_status()), 1);
    CHECK(to_json(answer) == to_json(*status.find("preflight")));
}

TEST_CASE("reply: the result prints as the daemon wrote it") {
    const std::string line = encode_result(1, full_status());
    const std::string text = to_json(result_of(line, 1));
    CHECK(line.find("\"result\":" + text + "}\n") != std::string::npos);
}

TEST_CASE("reply: an error says its kind, where, what to do, and that nothing was executed") {
    const Error error(ErrorKind::bad_workspace, "/home/u is a home", "workspace",
                      "use a directory");

    CHECK(encode_error(RequestId(1), error) ==
          R"({"jsonrpc":"2.0","id":1,"error":{"code":-32010,"message":)"
          R"("/home/u is a home. Nothing was executed.","data":{"kind":"bad_workspace",)"
          R"("field":"workspace","hint":"use a directory","executed":false}}})"
          "\n");
}

TEST_CASE("reply: an error comes back with every detail") {
    const Error error =
        Error(ErrorKind::sandbox_setup_failed, "cannot mount.").with_step("mount_proc", 1);

    const auto reply = std::get<ErrorReply>(decode(encode_error(std::nullopt, error)));

    CHECK_FALSE(reply.id.has_value());
    CHECK(reply.code == -32015);
    CHECK(reply.kind == "sandbox_setup_failed");
    CHECK(reply.message == "cannot mount. Nothing was executed.");
    CHECK(reply.step == "mount_proc");
    CHECK(reply.os_errno == 1);
    CHECK(reply.executed == false);
}

TEST_CASE("reply: an error during a live run does not say that nothing was executed") {
    const Error error(ErrorKind::unknown_field, "unknown member x", "x");

    const auto reply =
        std::get<ErrorReply>(decode(encode_error(std::nullopt, error, CommandState::running)));

    CHECK(reply.message == "unknown member x.");
    CHECK(reply.executed == true);
}

TEST_CASE("reply: whatever a message holds, the line is valid and short") {
    const std::string wild[] = {std::string(100000, '\xFF'), std::string(100000, '\0'),
                                std::string(100000, '\x1b'), "a\nb\xC3", "é"};
    for (const std::string& text : wild) {
        const Error error = Error(ErrorKind::internal, text, text, text).with_step(text, 5);
        const std::string line = encode_error(RequestId(text.substr(0, 256)), error);
        CHECK(line.size() <= daemon_line_bytes_max);
        CHECK(line.find('\n') == line.size() - 1);
        CHECK(std::holds_alternative<ErrorReply>(decode(line)));
    }
}

TEST_CASE("reply: a later daemon's additions are ignored") {
    CHECK(std::get<UnknownMessage>(
              decode("{\"jsonrpc\":\"2.0\",\"method\":\"progress\",\"params\":{}}\n"))
              .method == "progress");
    const auto started = std::get<Started>(
        decode("{\"jsonrpc\":\"2.0\",\"method\":\"started\",\"params\":"
               "{\"run\":\"r\",\"new\":[1.5,null],\"claims\":{\"new\":\"x\"}}}\n"));
    CHECK(started.box.claims == Claims{Claim{"new", "x", {}}});
}

TEST_CASE("reply: what a daemon does not say reads as the worst") {
    const auto started = std::get<Started>(
        decode("{\"jsonrpc\":\"2.0\",\"method\":\"started\",\"params\":{\"run\":\"r\","
               "\"capabilities\":{\"egress\":\"filtered\",\"can_reach_network\":\"no\"}}}\n"));
    CHECK(started.box.capabilities == Capabilities{});
    CHECK(started.box.capabilities.egress == Egress::chosen);
    CHECK(started.box.network);
    CHECK_FALSE(started.box.confined);

    const auto description = decode_describe_report(json(R"({"binds":[{"path":"/w"},7]})"));
    REQUIRE(description.has_value());
    CHECK(description->box.capabilities == Capabilities{});
    CHECK(description->binds ==
          std::vector<BoundPath>{{"/w", Access::read_write}, {"", Access::read_write}});

    const auto preflight = decode_preflight_report(json(R"({"state":"new"})"));
    REQUIRE(preflight.has_value());
    CHECK(preflight->state == PreflightState::failed);
    const auto claimed = decode_preflight_report(
        json(R"({"state":"passed","probes":[{"name":"a","verdict":"proved"},{"name":"b"}]})"));
    REQUIRE(claimed.has_value());
    CHECK(claimed->state == PreflightState::failed);
    CHECK(claimed->reason.find("the probe b") != std::string::npos);

    const auto report = decode_exit_report(json(R"({"exit":{"code":3},"reason":"new"})"));
    REQUIRE(report.has_value());
    CHECK(report->reason == EndReason::unrecognized);
    CHECK(report->tree == TreeState::kill_pending);
    CHECK(report->capabilities == Capabilities{});

    const auto status = decode_status_report(json(R"({"version":"9","preflight":{"state":"?"}})"));
    REQUIRE(status.has_value());
    CHECK(status->preflight.state == PreflightState::failed);
}

TEST_CASE("reply: an exit that cannot be read is never exit code 0") {
    for (const std::string_view text :
         {"{}", R"({"exit":{}})", R"({"exit":{"code":"0"}})", R"({"exit":{"code":256}})",
          R"({"exit":{"code":-1}})", R"({"exit":{"code":0.0}})", R"({"exit":{"signal":9}})",
          R"({"exit":{"signal":"SIGNOPE"}})", R"({"exit":{"code":0,"signal":"SIGKILL"}})",
          R"({"exit":{"code":0,"signal":7}})", R"({"exit":0})", "null", "[]"}) {
        CAPTURE(text);
        CHECK_FALSE(decode_exit_report(json(text)).has_value());
    }
    CHECK_FALSE(decode_status_report(json("{}")).has_value());
    CHECK_FALSE(decode_list_report(json("{}")).has_value());
    CHECK_FALSE(decode_kill_report(json("{}")).has_value());
    CHECK_FALSE(decode_describe_report(json(R"({"binds":{}})")).has_value());
    CHECK_FALSE(decode_preflight_report(json("{}")).has_value());
}

TEST_CASE("reply: lines that are no message of a daemon are refused") {
    for (const std::string_view line :
         {"", "hello", "[]", "1", "{}", R"({"jsonrpc":"2.0"})", R"({"jsonrpc":"2.0","id":1})",
          R"({"jsonrpc":"1.0","id":1,"result":{}})", R"({"jsonrpc":"2.0","result":{}})",
          R"({"jsonrpc":"2.0","id":null,"result":{}})", R"({"jsonrpc":"2.0","id":1.5,"result":{}})",
          R"({"jsonrpc":"2.0","id":1,"error":null})", R"({"jsonrpc":"2.0","id":1,"error":5})",
          R"({"jsonrpc":"2.0","id":1,"error":{}})",
          R"({"jsonrpc":"2.0","id":1,"error":{"code":1}})",
          R"({"jsonrpc":"2.0","id":1,"error":{"message":"x"}})", R"({"jsonrpc":"2.0","method":1})",
          R"({"jsonrpc":"2.0","method":"started"})",
          R"({"jsonrpc":"2.0","method":"started","params":{"run":"r","run":"s"}})"}) {
        CAPTURE(line);
        CHECK_FALSE(decode_daemon_message(line).has_value());
    }
}
