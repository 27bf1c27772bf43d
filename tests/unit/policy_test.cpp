// SPDX-License-Identifier: MIT
// What a request may choose besides its workspace: network, environment, command, cwd, limits.
#include "daemon/policy.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/unit/policy_fixture.hpp"

namespace mechad {
namespace {

using std::chrono::milliseconds;
using std::string_literals::operator""s;
using Strings = std::vector<std::string>;

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: a box carries what the configuration and the request say") {
    config.sandbox.tmp_mb = 3;
    SpawnParams request = request_for(project + "/");
    request.label = "pytest";
    request.stdin_spec = StdinInline{"text"};
    request.on_output_limit = OnOutputLimit::kill;
    auto policy = make_policy();
    REQUIRE(policy);

    const auto admission = (*policy)->admit(request);

    REQUIRE(admission);
    CHECK(admission->box.backend() == BackendKind::bwrap);
    CHECK(admission->box.workspace().path == project);
    CHECK(admission->box.workspace().id == identity_of(project));
    CHECK(admission->box.tmp_bytes() == 3 << 20);
    CHECK(admission->box.extra_binds().empty());
    CHECK_FALSE(admission->box.network());
    CHECK(admission->command.argv == Strings{"true"});
    CHECK(admission->command.cwd == ".");
    CHECK(admission->command.label == "pytest");
    CHECK(admission->command.stdin_spec == StdinSpec(StdinInline{"text"}));
    CHECK(admission->command.on_output_limit == OnOutputLimit::kill);
    CHECK_FALSE(admission->command.timeout);
    CHECK_FALSE(admission->command.output_limit_bytes);
}

struct NetworkCase {
    BackendKind kind;
    bool configured;
    NetworkOverride rule;
    std::optional<bool> requested;
    std::optional<bool> expected;  // absent: denied
};

constexpr auto bwrap = BackendKind::bwrap;
constexpr auto none = BackendKind::none;
constexpr auto allow = NetworkOverride::allow;
constexpr auto narrow = NetworkOverride::narrow;

const NetworkCase network_cases[] = {
    {bwrap, false, allow, std::nullopt, false},
    {bwrap, true, allow, std::nullopt, true},
    {bwrap, false, allow, true, true},
    {bwrap, true, allow, false, false},
    {bwrap, false, narrow, std::nullopt, false},
    {bwrap, true, narrow, std::nullopt, true},
    {bwrap, false, narrow, true, std::nullopt},
    {bwrap, false, narrow, false, false},
    {bwrap, true, narrow, false, false},
    {bwrap, true, narrow, true, true},
    {none, false, allow, std::nullopt, true},
    {none, true, allow, std::nullopt, true},
    {none, false, allow, true, true},
    {none, false, narrow, true, true},
    {none, false, allow, false, std::nullopt},
    {none, true, narrow, false, std::nullopt},
};

TEST_CASE_FIXTURE(PolicyFixture, "policy: the network is what was asked, within what is allowed") {
    for (const NetworkCase& network : network_cases) {
        CAPTURE(&network - network_cases);
        config.sandbox.kind = network.kind;
        config.sandbox.network = network.configured;
        config.daemon.network_override = network.rule;
        SpawnParams request = request_for(project);
        request.network = network.requested;
        auto policy = make_policy();
        REQUIRE(policy);

        const auto admission = (*policy)->admit(request);

        REQUIRE(admission.has_value() == network.expected.has_value());
        if (admission) {
            CHECK(admission->box.network() == *network.expected);
        } else {
            CHECK(admission.error().kind() == ErrorKind::policy_denied);
            CHECK(admission.error().field() == "network");
        }
    }
}

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: preflight tries both networks whatever the override rule") {
    config.daemon.network_override = NetworkOverride::narrow;
    SpawnParams request = request_for(project);
    request.network = true;
    auto policy = make_policy();
    REQUIRE(policy);

    const auto admission = (*policy)->admit_probe(request);

    REQUIRE(admission);
    CHECK(admission->box.network());
}

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: the limits of preflight's own command are not those of the daemon") {
    config.daemon.output_limit_bytes = 0;
    config.daemon.timeout = milliseconds(1);
    SpawnParams request = request_for(project);
    request.output_limit_bytes = 4096;
    request.timeout = milliseconds(10000);
    auto policy = make_policy();
    REQUIRE(policy);

    const auto probe = (*policy)->admit_probe(request);
    const auto command = (*policy)->admit(request);

    REQUIRE(probe);
    CHECK(probe->command.output_limit_bytes == 4096);
    CHECK(probe->command.timeout == milliseconds(10000));
    REQUIRE(command);
    CHECK(command->command.output_limit_bytes == 0);
    CHECK(command->command.timeout == milliseconds(1));
}

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: a boxed command gets its workspace as home, and no more than is named") {
    inherited["SECRET_TOKEN"] = "x";
    inherited["LANG"] = "C.UTF-8";
    inherited["PATH"] = "/evil";
    config.sandbox.env = {
        {"LANG", std::nullopt}, {"ABSENT", std::nullopt}, {"A", "config"}, {"B", "config"}};
    SpawnParams request = request_for(project);
    request.env = {{"B", "request"}, {"C", "\xff\n=x"}};
    auto policy = make_policy();
    REQUIRE(policy);

    const auto admission = (*policy)->admit(request);

    REQUIRE(admission);
    CHECK(admission->command.env ==
          Strings{"A=config", "B=request", "C=\xff\n=x", "HOME=" + project, "LANG=C.UTF-8",
                  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"});
    CHECK((*policy)->absent_env() == Strings{"ABSENT"});
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: config and request override the built-in variables") {
    config.sandbox.env = {{"PATH", "/config"}, {"HOME", std::nullopt}};
    SpawnParams request = request_for(project);
    request.env = {{"PATH", ""}};

    const auto admission = admit(request);

    // The box keeps a pointer into the policy, which is gone; the command is a value.
    REQUIRE(admission);
    CHECK(admission->command.env == Strings{"HOME=" + home, "PATH="});
}

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: without a sandbox a few variables of the daemon are kept") {
    config.sandbox.kind = BackendKind::none;
    config.sandbox.env = {{"EDITOR", std::nullopt}};
    inherited = {
        {"HOME", home}, {"PATH", "/bin"}, {"TZ", "UTC"}, {"EDITOR", "ed"}, {"SECRET_TOKEN", "x"}};
    SpawnParams request = request_for(project);
    request.env = {{"TZ", "CET"}};

    const auto admission = admit(request);

    REQUIRE(admission);
    CHECK(admission->command.env == Strings{"EDITOR=ed", "HOME=" + home, "PATH=/bin", "TZ=CET"});
}

struct BadEnv {
    std::string name;
    std::string value;
    const char* field;
};

TEST_CASE_FIXTURE(PolicyFixture, "policy: a variable that execve would misread is refused") {
    const BadEnv cases[] = {
        {"", "x", "env."},
        {"A=B", "x", "env.A=B"},
        {"A\0B"s, "x", "env.A\\x00B"},
        {"A", "x\0y"s, "env.A"},
        {"A", std::string(131070, 'x'), "env.A"},
    };
    auto policy = make_policy();
    REQUIRE(policy);

    for (const BadEnv& bad : cases) {
        CAPTURE(bad.field);
        SpawnParams request = request_for(project);
        request.env = {{bad.name, bad.value}};
        const auto admission = (*policy)->admit(request);
        REQUIRE_FALSE(admission);
        CHECK(admission.error().kind() == ErrorKind::invalid_request);
        CHECK(admission.error().field() == bad.field);
    }
    SpawnParams largest = request_for(project);
    largest.env = {{"A", std::string(131069, 'x')}};
    CHECK((*policy)->admit(largest));
}

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: a command goes to a login shell, an argv nowhere but to exec") {
    auto policy = make_policy();
    REQUIRE(policy);
    SpawnParams request = request_for(project);
    request.argv.reset();
    request.command = "echo \"$HOME\" # \xff";
    CHECK((*policy)->admit(request)->command.argv == Strings{"bash", "-lc", *request.command});
    request.command.reset();
    request.argv = {"--bind", "/", "", "$(x)"};
    CHECK((*policy)->admit(request)->command.argv == *request.argv);
}

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: a command that cannot be executed is refused with its limit") {
    auto policy = make_policy();
    REQUIRE(policy);
    const auto field_of = [&](std::optional<std::string> command, std::optional<Strings> argv) {
        SpawnParams request = request_for(project);
        request.command = std::move(command);
        request.argv = std::move(argv);
        const auto admission = (*policy)->admit(request);
        return admission ? "admitted"
                         : admission.error().field() + ": " + admission.error().message();
    };

    CHECK(field_of(std::string(131071, 'x'), std::nullopt) == "admitted");
    CHECK(field_of(std::string(131072, 'x'), std::nullopt) ==
          "command: command is too long: the limit of one argument or variable is 131071 bytes");
    CHECK(field_of(std::nullopt, Strings{"a", std::string(131072, 'x')}).starts_with("argv[1]: "));
    CHECK(field_of("a\0b"s, std::nullopt).starts_with("command: "));
    CHECK(field_of(std::nullopt, Strings{"a", "b\0"s}).starts_with("argv[1]: "));
    CHECK(field_of(std::nullopt, Strings{}).starts_with("argv: "));
    CHECK(field_of(std::nullopt, Strings{"", "x"}).starts_with("argv: "));
    CHECK(field_of("x", Strings{"x"}).starts_with("command: "));
    CHECK(field_of(std::nullopt, std::nullopt).starts_with("command: "));
}

struct CwdCase {
    std::string cwd;       // "@" stands for the workspace
    const char* relative;  // null: bad_cwd
};

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: the working directory is inside the workspace by its text") {
    const CwdCase cases[] = {
        {".", "."},
        {"./", "."},
        {"sub", "sub"},
        {"sub/", "sub"},
        {"./sub//a/.", "sub/a"},
        {"@", "."},
        {"@/", "."},
        {"@/.", "."},
        {"@/sub", "sub"},
        {"@//sub/./a/", "sub/a"},
        {"..a", "..a"},
        {"a\n\xff", "a\n\xff"},
        {"-x", "-x"},
        {"~", "~"},
        {"absent", "absent"},
        {"", nullptr},
        {"..", nullptr},
        {"sub/..", nullptr},
        {"../proj", nullptr},
        {"sub/../..", nullptr},
        {"@/..", nullptr},
        {"@/../proj", nullptr},
        {"@x", nullptr},
        {"/", nullptr},
        {"/tmp", nullptr},
        {"//", nullptr},
        {"/proc/self/cwd", nullptr},
        {"a\0b"s, nullptr},
        {std::string(5000, 'a'), nullptr},
    };
    auto policy = make_policy();
    REQUIRE(policy);

    for (const CwdCase& directory : cases) {
        SpawnParams request = request_for(project);
        request.cwd = directory.cwd;
        if (request.cwd->starts_with('@')) request.cwd->replace(0, 1, project);
        CAPTURE(*request.cwd);
        const auto admission = (*policy)->admit(request);
        REQUIRE(admission.has_value() == (directory.relative != nullptr));
        if (admission) {
            CHECK(admission->command.cwd == directory.relative);
        } else {
            CHECK(admission.error().kind() == ErrorKind::bad_cwd);
            CHECK(admission.error().field() == "cwd");
            CHECK(admission.error().hint().find(project) != std::string::npos);
        }
    }
}

TEST_CASE_FIXTURE(PolicyFixture,
                  "policy: a request lowers the configured limits and never raises them") {
    config.daemon.timeout = milliseconds(1000);
    config.daemon.output_limit_bytes = 50;
    auto policy = make_policy();
    REQUIRE(policy);
    SpawnParams request = request_for(project);
    const auto limits = [&] {
        const auto admission = (*policy)->admit(request);
        return std::pair(*admission->command.timeout, *admission->command.output_limit_bytes);
    };

    CHECK(limits() == std::pair(milliseconds(1000), std::uint64_t{50}));
    request.timeout = milliseconds(1001);
    request.output_limit_bytes = 51;
    CHECK(limits() == std::pair(milliseconds(1000), std::uint64_t{50}));
    request.timeout = milliseconds(999);
    request.output_limit_bytes = 0;
    CHECK(limits() == std::pair(milliseconds(999), std::uint64_t{0}));
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: without configured limits the request's hold") {
    SpawnParams request = request_for(project);
    request.timeout = milliseconds(7);
    request.output_limit_bytes = 8;

    const auto admission = admit(request);

    REQUIRE(admission);
    CHECK(admission->command.timeout == milliseconds(7));
    CHECK(admission->command.output_limit_bytes == 8);
}

TEST_CASE_FIXTURE(PolicyFixture, "policy: passed descriptors and terminals are refused by name") {
    SpawnParams request = request_for(project);
    request.stdio = StdioMode::fds;
    CHECK(admit(request).error().field() == "stdio");
    CHECK(admit(request).error().kind() == ErrorKind::invalid_request);
    request.stdio = StdioMode::stream;
    request.tty = true;
    CHECK(admit(request).error().field() == "tty");
    CHECK(admit(request).error().kind() == ErrorKind::invalid_request);
}

}  // namespace
}  // namespace mechad
