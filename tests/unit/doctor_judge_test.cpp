// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>

#include "client/ctl/doctor/judge.hpp"

using namespace mechad;
using namespace mechad::ctl;

namespace {

CheckRun passed(const std::string& kind, bool is_confined) {
    StatusReport status;
    status.version = "1.0";
    status.backend = kind;
    status.confined = is_confined;
    status.network = !is_confined;
    status.preflight.state = PreflightState::passed;
    status.preflight.probes = {{"namespaces", ProbeVerdict::proved, "ok"}};
    status.policy_digest = "digest";
    status.socket_path = "/run/user/1000/mechad/mechad.sock";
    status.config_path = "/home/u/.config/mechad/config.toml";
    return {.kind = kind, .status = status};
}

CheckRun failed(const std::string& kind) {
    CheckRun check = passed(kind, true);
    check.exit_code = 1;
    check.status->preflight.state = PreflightState::failed;
    check.status->preflight.reason = "the reason";
    check.status->preflight.remedy = "the remedy";
    check.status->preflight.probes = {{"home_canary_closed", ProbeVerdict::leak, "read it"},
                                      {"namespaces", ProbeVerdict::proved, "ok"}};
    return check;
}

CheckRun unknown(const std::string& kind) {
    return {.kind = kind, .exit_code = 78, .said = "kind cannot be \"" + kind + "\""};
}

// A machine on which there is nothing to say.
DoctorFacts healthy() {
    DoctorFacts facts;
    facts.uid = 1000;
    facts.program = "/usr/bin/mechad";
    facts.is_program = true;
    facts.configured = passed("bwrap", true);
    facts.kinds = {passed("bwrap", true), passed("none", false)};
    facts.socket = {.path = "/run/user/1000/mechad/mechad.sock",
                    .has_directory = true,
                    .is_private = true,
                    .exists = true,
                    .mode = 0600,
                    .is_ours = true};
    facts.daemon = *facts.configured.status;
    facts.unit = {.socket_unit = "/usr/lib/systemd/user/mechad.socket",
                  .is_enabled = true,
                  .config = "/home/u/.config/mechad/config.toml",
                  .has_config = true,
                  .has_manager = true,
                  .lingers = true,
                  .user = "u"};
    facts.delegation = {
        .directory = "/sys/fs/cgroup/u", .is_ours = true, .controllers = {"cpu", "memory", "pids"}};
    return facts;
}

Finding find(const DoctorFacts& facts, const std::string& check) {
    const auto findings = judge(facts);
    const auto found =
        std::find_if(findings.begin(), findings.end(),
                     [&check](const Finding& finding) { return finding.check == check; });
    REQUIRE_MESSAGE(found != findings.end(), check);
    return *found;
}

bool is_ok(const DoctorFacts& facts) {
    const auto findings = judge(facts);
    return std::none_of(findings.begin(), findings.end(),
                        [](const Finding& finding) { return finding.mark == Mark::bad; });
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("doctor: on a machine where all is well only none is a warning") {
    for (const auto& finding : judge(healthy())) {
        CHECK_MESSAGE((finding.mark == Mark::good) == (finding.check != "none"), finding.check);
    }
    CHECK(working_kinds(healthy()) == std::vector<std::string>{"bwrap"});
}

TEST_CASE("doctor: a backend that leaks is bad when it is configured, with probe and remedy") {
    DoctorFacts facts = healthy();
    facts.configured = failed("bwrap");
    facts.kinds = {failed("bwrap"), passed("docker", true), passed("none", false)};

    const auto finding = find(facts, "bwrap");

    CHECK(finding.mark == Mark::bad);
    CHECK(has(finding.cause, "the reason"));
    CHECK(has(finding.cause, "LEAK home_canary_closed: read it"));
    CHECK_FALSE(has(finding.cause, "namespaces"));
    CHECK(finding.fix == "the remedy");
    CHECK(working_kinds(facts) == std::vector<std::string>{"docker"});
}

TEST_CASE("doctor: a backend that is not configured may fail while another one works") {
    DoctorFacts facts = healthy();
    facts.kinds.push_back(failed("docker"));
    facts.kinds.push_back(unknown("landlock"));

    CHECK(find(facts, "docker").mark == Mark::warning);
    CHECK(find(facts, "landlock").mark == Mark::warning);
    CHECK(is_ok(facts));
}

TEST_CASE("doctor: no kind that confines is bad, whatever is configured") {
    DoctorFacts facts = healthy();
    facts.configured = passed("none", false);
    facts.kinds = {failed("bwrap"), passed("none", false)};

    CHECK(find(facts, "sandbox").mark == Mark::bad);
    CHECK(working_kinds(facts).empty());
}

TEST_CASE("doctor: an unconfined configuration is a warning that names a kind that works") {
    DoctorFacts facts = healthy();
    facts.configured = passed("none", false);

    const auto finding = find(facts, "config");

    CHECK(finding.mark == Mark::warning);
    CHECK(has(finding.cause, "nothing is confined"));
    CHECK(has(finding.fix, "kind = \"bwrap\""));
}

TEST_CASE("doctor: a wrong configuration is bad, in mechad's own words") {
    DoctorFacts facts = healthy();
    facts.configured = {.exit_code = 78, .said = "config.toml:2:1: unknown key"};

    const auto finding = find(facts, "config");

    CHECK(finding.mark == Mark::bad);
    CHECK(finding.cause == "config.toml:2:1: unknown key");
    CHECK_FALSE(finding.fix.empty());
}

TEST_CASE("doctor: a check without a verdict is never good") {
    DoctorFacts facts = healthy();
    facts.configured = {.exit_code = 137, .is_late = true};
    facts.kinds = {{.kind = "bwrap", .exit_code = 139, .said = "oops"}};

    CHECK(find(facts, "config").mark == Mark::bad);
    CHECK(find(facts, "bwrap").mark != Mark::good);
    CHECK(has(find(facts, "bwrap").cause, "139: oops"));
    CHECK_FALSE(is_ok(facts));
}

TEST_CASE("doctor: a verdict without its exit code, kind or probes is none") {
    DoctorFacts facts = healthy();
    CheckRun& check = facts.kinds.front();
    SUBCASE("it ended otherwise") { check.exit_code = 1; }
    SUBCASE("a signal ended it") { check.exit_code = 139; }
    SUBCASE("it did not end") { check.is_late = true; }
    SUBCASE("of another backend") { check.status->backend = "none"; }
    SUBCASE("without a probe") { check.status->preflight.probes.clear(); }
    SUBCASE("with a probe that leaks") {
        check.status->preflight.probes.push_back({"x", ProbeVerdict::leak, ""});
    }
    SUBCASE("a failure that ended with 0") {
        check.status->preflight.state = PreflightState::failed;
    }

    CHECK(find(facts, "bwrap").mark == Mark::bad);
    CHECK(working_kinds(facts).empty());
    CHECK_FALSE(is_ok(facts));
}

TEST_CASE("doctor: a daemon that confines nothing or has proved nothing is not good") {
    DoctorFacts facts = healthy();
    SUBCASE("unconfined") { facts.daemon = passed("none", false).status; }
    SUBCASE("preflight is running") { facts.daemon->preflight.state = PreflightState::running; }
    SUBCASE("no probe") { facts.daemon->preflight.probes.clear(); }

    CHECK(find(facts, "daemon").mark == Mark::warning);
    CHECK_FALSE(has(find(facts, "daemon").cause, ", proved"));
}

TEST_CASE("doctor: without mechad nothing else is looked at") {
    DoctorFacts facts = healthy();
    facts.is_program = false;

    CHECK(judge(facts).size() == 2);
    CHECK(find(facts, "program").mark == Mark::bad);
}

TEST_CASE("doctor: sockets that others could use or replace are bad") {
    DoctorFacts facts = healthy();
    SUBCASE("a directory that others may enter") { facts.socket.is_private = false; }
    SUBCASE("a way that others can turn") { facts.socket.way_problem = "/tmp/x is not safe"; }
    SUBCASE("a socket that others may write") { facts.socket.mode = 0666; }
    SUBCASE("a socket of somebody else") { facts.socket.is_ours = false; }

    CHECK(find(facts, "socket").mark == Mark::bad);
}

TEST_CASE("doctor: no daemon is a warning, one that must not be believed is bad") {
    DoctorFacts facts = healthy();
    facts.daemon.reset();
    facts.daemon_problem = "served by uid 7";
    CHECK(find(facts, "daemon").mark == Mark::bad);
    CHECK(find(facts, "daemon").cause == "served by uid 7");

    facts.socket.exists = false;
    CHECK(find(facts, "daemon").mark == Mark::warning);
    CHECK(find(facts, "daemon").fix == "systemctl --user enable --now mechad.socket");
    facts.unit.has_manager = false;
    CHECK(find(facts, "daemon").fix == "mechad &");
}

TEST_CASE("doctor: a daemon that refuses is bad, one of another policy or version a warning") {
    DoctorFacts facts = healthy();
    facts.daemon = failed("bwrap").status;
    CHECK(find(facts, "daemon").mark == Mark::bad);
    CHECK(has(find(facts, "daemon").fix, "mechad-ctl recheck"));

    facts.daemon = healthy().daemon;
    facts.daemon->policy_digest = "another";
    CHECK(find(facts, "daemon").mark == Mark::warning);

    facts.daemon = healthy().daemon;
    facts.daemon->version = "0.9";
    CHECK(find(facts, "daemon").mark == Mark::warning);
    CHECK(has(find(facts, "daemon").cause, "0.9"));
}

TEST_CASE("doctor: a daemon that clients do not look for is told with the variable to set") {
    DoctorFacts facts = healthy();
    facts.configured.status->socket_path = "/srv/m.sock";

    CHECK(find(facts, "socket path").fix == "export MECHAD_SOCKET='/srv/m.sock'");
}

TEST_CASE("doctor: what systemd and the kernel lack are warnings with a fix") {
    DoctorFacts facts = healthy();
    facts.unit.has_config = false;
    CHECK(has(find(facts, "unit").cause, "opens nothing without /home/u/.config"));
    facts.unit.is_enabled = false;
    facts.unit.lingers = false;
    facts.delegation.controllers = {"pids"};
    facts.container = "docker";

    CHECK(find(facts, "unit").fix == "systemctl --user enable --now mechad.socket");
    CHECK(find(facts, "linger").fix == "loginctl enable-linger u");
    CHECK(has(find(facts, "delegation").cause, "cpu, memory"));
    CHECK(has(find(facts, "delegation").fix, "Delegate="));
    CHECK(find(facts, "container").mark == Mark::warning);
    facts.unit.socket_unit = "";
    CHECK(has(find(facts, "unit").cause, "not installed"));
    facts.unit.is_masked = true;
    CHECK(has(find(facts, "unit").cause, "masked"));
    facts.unit.has_manager = false;
    CHECK(find(facts, "unit").mark == Mark::warning);
    facts.delegation.is_ours = false;
    CHECK(find(facts, "delegation").mark == Mark::warning);
    facts.delegation.directory = "";
    CHECK(find(facts, "delegation").mark == Mark::warning);
    facts.uid = 0;
    CHECK(find(facts, "user").mark == Mark::warning);
    CHECK(is_ok(facts));
}
