// SPDX-License-Identifier: MIT
#include "daemon/config.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/unit/result_printer.hpp"
#include "tests/unit/temp_tree.hpp"

namespace mechad {
namespace {

struct BadConfig {
    const char* text;
    const char* field;
    const char* position;  // LINE:COL
    const char* fragment;  // of the message
};

// Control bytes are spelled as TOML escapes; what the file must not hold raw is tested below.
const BadConfig bad_configs[] = {
    // Keys and tables.
    {"[sandbox]\nknid = \"bwrap\"", "sandbox.knid", "2:1", "did you mean \"kind\"?"},
    {"[sandbox]\nnetwrok = false", "sandbox.netwrok", "2:1", "did you mean \"network\"?"},
    {"[sandbox]\nreadables = []", "sandbox.readables", "2:1", "did you mean \"readable\"?"},
    {"[sandbox]\nzzz = 1", "sandbox.zzz", "2:1", "Allowed: kind, network"},
    {"[sandbox]\n\"a\\u0000b\" = 1", "sandbox.a\\x00b", "2:1", "unknown key"},
    {"[daemon]\nrun_max = 1", "daemon.run_max", "2:1", "did you mean \"runs_max\"?"},
    {"[daemon]\nkind = \"none\"", "kind", "2:1", "must stand below [sandbox]"},
    {"[sandbox]\nruns_max = 3", "runs_max", "2:1", "must stand below [daemon]"},
    {"[sandbx]\n", "sandbx", "1:2", "did you mean \"sandbox\"?"},
    {"kind = \"bwrap\"", "kind", "1:1", "must stand below [sandbox]"},
    {"socket = \"/tmp/s\"", "socket", "1:1", "must stand below [daemon]"},
    {"sandbox = 1", "sandbox", "1:11", "must be a table"},
    {"[[daemon]]\nruns_max = 1", "daemon", "1:1", "must be a table"},
    {"[server.files]\nnetwork = true", "server", "1:", "not available in this version"},
    // kind, network, submounts.
    {"[sandbox]\nkind = \"bwarp\"", "sandbox.kind", "2:8", "did you mean \"bwrap\"?"},
    {"[sandbox]\nkind = \"Bwrap\"", "sandbox.kind", "2:8", "\"none\", \"bwrap\""},
    {"[sandbox]\nkind = \"\"", "sandbox.kind", "2:8", "must be one of"},
    {"[sandbox]\nkind = true", "sandbox.kind", "2:8", "must be a string, not a boolean"},
    {"[sandbox]\nkind = \"docker\"", "sandbox.kind", "2:8", "in this version"},
    {"[sandbox]\nkind = \"landlock\"", "sandbox.kind", "2:8", "in this version"},
    {"[sandbox]\nnetwork = \"false\"", "sandbox.network", "2:11", "must be true or false"},
    {"[sandbox]\nnetwork = 0", "sandbox.network", "2:11", "must be true or false"},
    {"[sandbox]\nsubmounts = []", "sandbox.submounts", "2:13", "not an array"},
    // Paths.
    {"[sandbox]\nreadable = \"/opt/x\"", "sandbox.readable", "2:12", "an array of strings"},
    {"[sandbox]\nreadable = [1]", "sandbox.readable[0]", "2:13", "must be a string"},
    {"[sandbox]\nreadable = [\"/a\", \"\"]", "sandbox.readable[1]", "2:19", "empty string"},
    {"[sandbox]\nwritable = [\"\"]", "sandbox.writable[0]", "2:13", "empty string"},
    {"[sandbox]\nwritable = [\"a/b\"]", "sandbox.writable[0]", "2:13", "an absolute path"},
    {"[sandbox]\nwritable = [\".\"]", "sandbox.writable[0]", "2:13", "an absolute path"},
    {"[sandbox]\nwritable = [\"~user/x\"]", "sandbox.writable[0]", "2:13", "an absolute path"},
    {"[sandbox]\nwritable = [\"/a/../b\"]", "sandbox.writable[0]", "2:13", "without \"//\""},
    {"[sandbox]\nwritable = [\"/a/..\"]", "sandbox.writable[0]", "2:13", "without \"//\""},
    {"[sandbox]\nwritable = [\"/a/./b\"]", "sandbox.writable[0]", "2:13", "without \"//\""},
    {"[sandbox]\nwritable = [\"/a//b\"]", "sandbox.writable[0]", "2:13", "without \"//\""},
    {"[sandbox]\nwritable = [\"//a\"]", "sandbox.writable[0]", "2:13", "without \"//\""},
    {"[sandbox]\nwritable = [\"/a//\"]", "sandbox.writable[0]", "2:13", "without \"//\""},
    {"[sandbox]\nwritable = [\"/a\\u0000b\"]", "sandbox.writable[0]", "2:13", "NUL"},
    {"[daemon]\nsocket = \"mechad.sock\"", "daemon.socket", "2:10", "an absolute path"},
    {"[daemon]\nsocket = \"\"", "daemon.socket", "2:10", "empty string"},
    {"[daemon]\nworkspaces = [\"w\"]", "daemon.workspaces[0]", "2:15", "an absolute path"},
    {"[daemon]\nworkspaces = \"/w\"", "daemon.workspaces", "2:14", "an array of strings"},
    // env.
    {"[sandbox]\nenv = \"PATH\"", "sandbox.env", "2:7", "an array of strings"},
    {"[sandbox.env]\nPATH = \"/bin\"", "sandbox.env", "1:", "an array of strings"},
    {"[sandbox]\nenv = [\"\"]", "sandbox.env[0]", "2:8", "\"NAME\" or \"NAME=value\""},
    {"[sandbox]\nenv = [\"=x\"]", "sandbox.env[0]", "2:8", "\"NAME\" or \"NAME=value\""},
    {"[sandbox]\nenv = [\"A B=x\"]", "sandbox.env[0]", "2:8", "\"NAME\" or \"NAME=value\""},
    {"[sandbox]\nenv = [\"1A\"]", "sandbox.env[0]", "2:8", "\"NAME\" or \"NAME=value\""},
    {"[sandbox]\nenv = [\"A\\u0000\"]", "sandbox.env[0]", "2:8", "\"NAME\" or \"NAME=value\""},
    {"[sandbox]\nenv = [\"A=\\u0000\"]", "sandbox.env[0]", "2:8", "NUL"},
    {"[sandbox]\nenv = [\"A\", \"B\", \"A=1\"]", "sandbox.env[2]", "2:18", "names A again"},
    // Numbers.
    {"[sandbox]\ntmp_mb = 0", "sandbox.tmp_mb", "2:10", "from 1 to 1048576, not 0"},
    {"[sandbox]\ntmp_mb = -1", "sandbox.tmp_mb", "2:10", "not -1"},
    {"[sandbox]\ntmp_mb = 1048577", "sandbox.tmp_mb", "2:10", "not 1048577"},
    {"[sandbox]\ntmp_mb = 1.0", "sandbox.tmp_mb", "2:10", "not a floating-point number"},
    {"[sandbox]\ntmp_mb = nan", "sandbox.tmp_mb", "2:10", "not a floating-point number"},
    {"[sandbox]\ntmp_mb = \"1g\"", "sandbox.tmp_mb", "2:10", "not a string"},
    {"[sandbox]\ntmp_mb = 2020-01-01", "sandbox.tmp_mb", "2:10", "not a date or time"},
    {"[sandbox]\ntmp_mb = 99999999999999999999", "", "2:", "not valid TOML"},
    {"[daemon]\nruns_max = 0", "daemon.runs_max", "2:12", "from 1 to 65536"},
    {"[daemon]\nruns_max = 65537", "daemon.runs_max", "2:12", "from 1 to 65536"},
    {"[daemon]\nkill_grace_ms = -1", "daemon.kill_grace_ms", "2:17", "from 0 to 600000"},
    {"[daemon]\nkill_grace_ms = 600001", "daemon.kill_grace_ms", "2:17", "from 0 to 600000"},
    {"[daemon]\ntimeout_ms = 0", "daemon.timeout_ms", "2:14", "from 1 to"},
    {"[daemon]\ntimeout_ms = 9223372036854775807", "daemon.timeout_ms", "2:14", "from 1 to"},
    {"[daemon]\ntimeout_ms = inf", "daemon.timeout_ms", "2:14", "from 1 to"},
    {"[daemon]\noutput_limit_bytes = -1", "daemon.output_limit_bytes", "2:22", "from 0 to"},
    {"[daemon]\nnetwork_override = true", "daemon.network_override", "2:20", "must be a string"},
    {"[daemon]\nnetwork_override = \"deny\"", "daemon.network_override", "2:20", "\"narrow\""},
    // Understood, and not enforced yet; a wrong value is told first.
    {"[sandbox]\nmemory_mb = 512", "sandbox.memory_mb", "2:13", "is not enforced"},
    {"[sandbox]\nmemory_mb = 0", "sandbox.memory_mb", "2:13", "an integer from 1"},
    {"[sandbox]\nmemory_mb = -5", "sandbox.memory_mb", "2:13", "an integer from 1"},
    {"[sandbox]\ncpus = 1.5", "sandbox.cpus", "2:8", "is not enforced"},
    {"[sandbox]\ncpus = 0", "sandbox.cpus", "2:8", "a number above 0"},
    {"[sandbox]\ncpus = -0.5", "sandbox.cpus", "2:8", "a number above 0"},
    {"[sandbox]\ncpus = nan", "sandbox.cpus", "2:8", "a number above 0"},
    {"[sandbox]\ncpus = inf", "sandbox.cpus", "2:8", "a number above 0"},
    {"[sandbox]\ncpus = 1e300", "sandbox.cpus", "2:8", "a number above 0"},
    {"[sandbox]\ncpus = \"2\"", "sandbox.cpus", "2:8", "a number above 0"},
    {"[sandbox]\npids = 100", "sandbox.pids", "2:8", "is not enforced"},
    {"[sandbox]\npids = 0", "sandbox.pids", "2:8", "an integer from 1"},
    {"[sandbox]\nimage = \"debian\"", "sandbox.image", "2:9", "is not enforced"},
    {"[sandbox]\nimage = \"\"", "sandbox.image", "2:9", "must name an image"},
    {"[sandbox]\nshared_tmp = true", "sandbox.shared_tmp", "2:14", "is not enforced"},
    {"[sandbox]\nshared_tmp = 1", "sandbox.shared_tmp", "2:14", "must be true or false"},
    {"[daemon]\nidle_exit_s = 2678401", "daemon.idle_exit_s", "2:15", "from 0 to 2678400"},
    {"[daemon]\nidle_exit_s = 0.5", "daemon.idle_exit_s", "2:15", "an integer from 0"},
    {"[daemon]\nidle_exit_s = -1", "daemon.idle_exit_s", "2:15", "an integer from 0"},
    // Not TOML.
    {"[sandbox\n", "", "1:9", "not valid TOML"},
    {"[sandbox]\nkind = bwrap", "", "2:", "not valid TOML"},
    {"[sandbox]\nkind = \"none\"\nkind = \"bwrap\"", "", "3:", "not valid TOML"},
    {"[sandbox]\n[sandbox]\n", "", "2:", "not valid TOML"},
    {"[sandbox]\nenv = [\"A\"", "", "2:", "not valid TOML"},
    {"{\"sandbox\": {}}", "", "1:", "not valid TOML"},
    {"[sandbox]\nkind = \"\xff\"", "", "2:", "not valid TOML"},
};

Config parsed(std::string_view text) {
    auto config = parse_config(text, "config.toml");
    if (!config) FAIL(config.error().message());
    return *std::move(config);
}

TEST_CASE("config: what is wrong is named with its place, its key and what is allowed") {
    for (const BadConfig& bad : bad_configs) {
        CAPTURE(bad.text);

        const auto config = parse_config(bad.text, "config.toml");

        REQUIRE_FALSE(config);
        CAPTURE(config.error().message());
        CHECK(config.error().kind() == ErrorKind::invalid_request);
        CHECK(config.error().field() == bad.field);
        CHECK(config.error().message().starts_with(std::string("config.toml:") + bad.position));
        CHECK(config.error().message().find(bad.fragment) != std::string::npos);
    }
}

TEST_CASE("config: a path that begins with ~ is refused with the path spelled out") {
    const auto config = parse_config("[sandbox]\nreadable = [\"~/data\"]", "c");

    REQUIRE_FALSE(config);
    CHECK(config.error().field() == "sandbox.readable[0]");
    CHECK(config.error().message().find("write \"/") != std::string::npos);
    CHECK(config.error().message().find("/data\"") != std::string::npos);
}

TEST_CASE("config: NUL, a path that is too long and a text that is too deep are refused") {
    using std::string_literals::operator""s;

    CHECK_FALSE(parse_config("[sandbox]\nkind = \"none\"\n\0"s, "c"));
    CHECK_FALSE(parse_config("[sandbox]\nreadable = [\"/" + std::string(5000, 'a') + "\"]", "c"));
    CHECK_FALSE(parse_config("[daemon]\nsocket = \"/" + std::string(107, 'a') + "\"", "c"));
    CHECK_FALSE(parse_config("[sandbox]\nenv = [\"A=" + std::string(131072, 'a') + "\"]", "c"));
    CHECK_FALSE(parse_config("a = " + std::string(100'000, '['), "c"));
}

TEST_CASE("config: a message is one line of printable text, whatever the file holds") {
    const auto config = parse_config("[sandbox]\nkind = \"\\u001b[2J\\n\\u202ex\"", "c\n.toml");

    REQUIRE_FALSE(config);
    CHECK(config.error().message().find_first_of("\n\x1b") == std::string::npos);
    CHECK(config.error().message().starts_with("c\\x0a.toml:2:8: "));
}

TEST_CASE("config: an empty file gives the defaults") {
    const Config config = parsed("");

    CHECK(config.sandbox.kind == BackendKind::none);
    CHECK_FALSE(config.sandbox.network);
    CHECK_FALSE(config.sandbox.submounts);
    CHECK(config.sandbox.tmp_mb == 1024);
    CHECK(config.daemon.runs_max == 256);
    CHECK(config.daemon.kill_grace == std::chrono::milliseconds(2000));
    CHECK_FALSE(config.daemon.output_limit_bytes);
    CHECK_FALSE(config.daemon.timeout);
    CHECK(config.daemon.network_override == NetworkOverride::allow);
}

TEST_CASE("config: every key is read") {
    const Config config = parsed(R"(
[sandbox]
kind = "bwrap"
network = true
writable = ["/w", "/w2/"]
readable = ["/r"]
env = ["LANG", "A=b=c", "EMPTY="]
tmp_mb = 64
submounts = true
[daemon]
socket = "/run/x.sock"
runs_max = 3
idle_exit_s = 900
kill_grace_ms = 0
output_limit_bytes = 0
timeout_ms = 5000
workspaces = ["/p"]
network_override = "narrow"
)");

    CHECK(config.sandbox.kind == BackendKind::bwrap);
    CHECK(config.sandbox.network);
    CHECK(config.sandbox.writable == std::vector<std::string>{"/w", "/w2"});
    CHECK(config.sandbox.readable == std::vector<std::string>{"/r"});
    CHECK(config.sandbox.env ==
          std::vector<EnvEntry>{{"LANG", std::nullopt}, {"A", "b=c"}, {"EMPTY", ""}});
    CHECK(config.sandbox.tmp_mb == 64);
    CHECK(config.sandbox.submounts);
    CHECK(config.daemon.socket == "/run/x.sock");
    CHECK(config.daemon.runs_max == 3);
    CHECK(config.daemon.idle_exit == std::chrono::minutes(15));
    CHECK(config.daemon.kill_grace == std::chrono::milliseconds(0));
    CHECK(config.daemon.output_limit_bytes == 0);
    CHECK(config.daemon.timeout == std::chrono::milliseconds(5000));
    CHECK(config.daemon.workspaces == std::vector<std::string>{"/p"});
    CHECK(config.daemon.network_override == NetworkOverride::narrow);
}

TEST_CASE("config: the digest follows the values, not the text") {
    const std::string defaults = parsed("").digest;

    CHECK(defaults.size() == 36);
    CHECK(parsed("# a comment\n[sandbox]\nkind = \"none\"\ntmp_mb = 1_024\n").digest == defaults);
    CHECK(parsed("sandbox = { network = false }").digest == defaults);
    CHECK(parsed("[sandbox]\nnetwork = true").digest != defaults);
    CHECK(parsed("[daemon]\ntimeout_ms = 1").digest != defaults);
    CHECK(parsed("[daemon]\nidle_exit_s = 1").digest != defaults);
    CHECK(parsed("[sandbox]\nreadable = [\"/a\"]").digest !=
          parsed("[sandbox]\nwritable = [\"/a\"]").digest);
    CHECK(parsed("[sandbox]\nenv = [\"A\"]").digest != parsed("[sandbox]\nenv = [\"A=\"]").digest);
    CHECK(parsed("[sandbox]\nreadable = [\"/a\", \"/b\"]").digest !=
          parsed("[sandbox]\nreadable = [\"/a\\nsandbox.readable=2:/b\"]").digest);
}

TEST_CASE(
    "config: a file is found in the documented order, and one that is broken is not skipped") {
    const TempTree tree;
    const std::string home = tree.make_dir("home");
    tree.make_file("home/.config/mechad/config.toml");
    tree.make_file("xdg/mechad/config.toml");
    tree.make_dir("empty");
    tree.make_link("nowhere", "dangling/mechad/config.toml");
    const auto found = [](const ConfigSearch& search) { return find_config(search); };

    CHECK(*found({.explicit_path = tree / "xdg/mechad/config.toml",
                  .xdg_config_home = {},
                  .home = home}) == tree / "xdg/mechad/config.toml");
    CHECK_FALSE(found({.explicit_path = tree / "absent", .xdg_config_home = {}, .home = home}));
    CHECK_FALSE(found({.explicit_path = "", .xdg_config_home = {}, .home = home}));
    CHECK(*found({.explicit_path = {}, .xdg_config_home = tree / "xdg", .home = home}) ==
          tree / "xdg/mechad/config.toml");
    CHECK(*found({.explicit_path = {}, .xdg_config_home = "", .home = home}) ==
          home + "/.config/mechad/config.toml");
    CHECK(*found({.explicit_path = {}, .xdg_config_home = "relative", .home = home}) ==
          home + "/.config/mechad/config.toml");
    CHECK(*found({.explicit_path = {}, .xdg_config_home = tree / "empty", .home = home}) !=
          home + "/.config/mechad/config.toml");
    const auto dangling =
        found({.explicit_path = {}, .xdg_config_home = tree / "dangling", .home = home});
    REQUIRE(dangling);
    REQUIRE(*dangling);
    CHECK_FALSE(load_config(**dangling));
}

TEST_CASE("config: only a regular file of moderate size is loaded") {
    const TempTree tree;
    const std::string good = tree.make_file("good.toml", "[sandbox]\nkind = \"bwrap\"\n");
    const std::string large = tree.make_file("large.toml", std::string((1 << 20) + 1, '\n'));
    const std::string fifo = tree / "fifo";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);

    const auto config = load_config(good);

    REQUIRE(config);
    CHECK(config->path == good);
    CHECK(config->sandbox.kind == BackendKind::bwrap);
    CHECK(load_config(large).error().message().find("1 MiB") != std::string::npos);
    CHECK(load_config(fifo).error().message().find("regular file") != std::string::npos);
    CHECK(load_config(tree.path()).error().message().find("regular file") != std::string::npos);
    CHECK_FALSE(load_config(tree / "absent"));
}

TEST_CASE("config: a file that others can write, or own, is not loaded") {
    const TempTree tree;
    const std::string file = tree.make_file("config.toml", "[sandbox]\n");

    for (const mode_t mode : {0400U, 0600U, 0644U, 0755U}) {
        REQUIRE(::chmod(file.c_str(), mode) == 0);
        CHECK(load_config(file));
    }
    for (const mode_t mode : {0620U, 0602U, 0666U}) {
        REQUIRE(::chmod(file.c_str(), mode) == 0);
        CHECK(load_config(file).error().hint() == "chmod go-w " + file);
    }
    if (::geteuid() != 0) return;  // only root can give a file away
    REQUIRE(::chmod(file.c_str(), 0644) == 0);
    REQUIRE(::chown(file.c_str(), 65534, 65534) == 0);
    CHECK(load_config(file).error().message().find("belongs to uid 65534") != std::string::npos);
}

}  // namespace
}  // namespace mechad
