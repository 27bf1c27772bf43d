// SPDX-License-Identifier: MIT
// What a confined run costs, as ratios from one interleaved run: the cases take turns, so that a
// busy machine slows all of them alike. scripts/bench starts the two daemons.
//   mechad-bench NONE_SOCKET BWRAP_SOCKET WORKSPACE ROUNDS
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "daemon/os/unique_fd.hpp"
#include "tests/bench/client.hpp"

namespace {

using mechad::bench::call;
using mechad::bench::die;
using mechad::bench::spawn_line;
using Words = std::vector<std::string>;

constexpr int warm_up_rounds = 5;
constexpr int stream_rounds = 3;
constexpr int stream_file_count = 16;
constexpr long stream_file_bytes = 64L << 20;
constexpr long stream_bytes = stream_file_count * stream_file_bytes;  // 1 GiB

// posix_spawn with an empty environment and, when `out` is not -1, that as stdout.
pid_t spawn(const Words& words, int out = -1) {
    std::vector<char*> argv;
    for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    char* no_environment[] = {nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (out != -1) posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    pid_t pid = 0;
    const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), no_environment);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) die("cannot start " + words[0]);
    return pid;
}

void expect_success(pid_t pid, const std::string& what) {
    int status = 0;
    if (::waitpid(pid, &status, 0) != pid || status != 0) die(what + " failed");
}

// Key and value of a reply, without the space that no writer of compact JSON puts between them.
void expect_in(const std::string& reply, const std::string& text) {
    if (reply.find(text) == std::string::npos) die("no " + text + " in the reply: " + reply);
}

// What mechad asks of bwrap for a closed run, less what serves mechad-init only. Without
// --as-pid-1: bwrap itself is then pid 1, as for everybody who calls it by hand.
Words bwrap_words(const std::string& workspace) {
    Words words{"/usr/bin/bwrap", "--unshare-user",   "--unshare-pid", "--unshare-ipc",
                "--unshare-uts",  "--unshare-cgroup", "--unshare-net", "--die-with-parent",
                "--new-session",  "--disable-userns", "--cap-drop",    "ALL",
                "--clearenv"};
    const auto add = [&words](Words more) { words.insert(words.end(), more.begin(), more.end()); };
    for (const std::string path :
         {"/usr", "/etc", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
        char target[4096];
        const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
        if (size > 0) {
            add({"--symlink", std::string(target, static_cast<std::size_t>(size)), path});
        } else if (struct stat found; ::stat(path.c_str(), &found) == 0) {
            add({"--ro-bind", path, path});
        }
    }
    const std::string size = std::to_string(1L << 30);
    add({"--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"});
    add({"--dev", "/dev", "--perms", "1777", "--size", size, "--tmpfs", "/dev/shm"});
    add({"--remount-ro", "/dev", "--perms", "1777", "--size", size, "--tmpfs", "/tmp"});
    add({"--perms", "1777", "--size", size, "--tmpfs", "/var/tmp"});
    add({"--ro-bind", "/etc/passwd", "/etc/passwd", "--ro-bind", "/etc/group", "/etc/group"});
    add({"--bind", workspace, workspace, "--remount-ro", "/", "--chdir", workspace});
    add({"--", "/usr/bin/true"});
    return words;
}

struct Case {
    std::string name;
    std::function<void()> run;
    std::vector<double> seconds;
};

void take_turns(std::vector<Case>& cases, int rounds, int unmeasured) {
    using Clock = std::chrono::steady_clock;
    for (int round = -unmeasured; round < rounds; ++round) {
        for (auto& each : cases) {
            const auto start = Clock::now();
            each.run();
            const std::chrono::duration<double> took = Clock::now() - start;
            if (round >= 0) each.seconds.push_back(took.count());
        }
    }
    for (auto& each : cases) std::sort(each.seconds.begin(), each.seconds.end());
}

double quantile(const Case& of, double share) {
    const auto last = static_cast<double>(of.seconds.size() - 1);
    return of.seconds[static_cast<std::size_t>(std::lround(share * last))];
}

double median(const Case& of) { return quantile(of, 0.5); }

const char* verdict(bool met) { return met ? "met" : "MISSED"; }

void measure_spawns(const std::string& none_socket, const std::string& bwrap_socket,
                    const std::string& workspace, int rounds) {
    const Words direct = bwrap_words(workspace);
    const std::string line = spawn_line({"true"}, workspace);
    const auto through = [&line](const std::string& socket) {
        expect_in(call(socket, line), R"("exit":{"code":0})");
    };
    std::vector<Case> cases{
        {"posix_spawn of true", [] { expect_success(spawn({"/usr/bin/true"}), "true"); }, {}},
        {"mechad, none", [&] { through(none_socket); }, {}},
        {"bwrap directly", [&] { expect_success(spawn(direct), "bwrap"); }, {}},
        {"mechad, bwrap", [&] { through(bwrap_socket); }, {}},
    };
    take_turns(cases, rounds, warm_up_rounds);

    const double floor = median(cases[0]);
    std::printf("%d rounds, each a fresh connection; x = median of posix_spawn\n\n", rounds);
    std::printf("%-22s %12s %8s %8s\n", "", "median", "median", "p99");
    for (const auto& each : cases) {
        std::printf("%-22s %9.2f ms %7.2fx %7.2fx\n", each.name.c_str(), median(each) * 1e3,
                    median(each) / floor, quantile(each, 0.99) / floor);
    }
    const double none = median(cases[1]) / floor;
    const double bwrap = median(cases[3]) / median(cases[2]);
    std::printf("\nmechad, none  / posix_spawn      %5.2f   target <= 1.60   %s\n", none,
                verdict(none <= 1.6));
    std::printf("mechad, bwrap / bwrap directly   %5.2f   target <= 1.00   %s\n", bwrap,
                verdict(bwrap <= 1.0));
}

// Lines as a build prints them: bytes that an encoder has to look at, none that it must refuse.
std::string write_log(const std::string& workspace) {
    std::string path = workspace + "/build.log";
    std::ofstream file(path, std::ios::binary);
    std::string block;
    for (int i = 0; block.size() < (1U << 20); ++i) {
        block += "[" + std::to_string(i) + "/24000] c++ -O2 -DNAME=\"x\" -c src/module_" +
                 std::to_string(i % 977) + ".cpp\n";
    }
    block.resize(1U << 20);
    for (long written = 0; written < stream_file_bytes; written += 1L << 20) file << block;
    if (!file.flush()) die("cannot write " + path);
    return path;
}

void read_raw_pipe(const Words& words) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) die("pipe2");
    const mechad::os::UniqueFd read_end(ends[0]);
    mechad::os::UniqueFd write_end(ends[1]);
    const pid_t pid = spawn(words, write_end.get());
    write_end.reset();
    std::vector<char> buffer(std::size_t{1} << 16);
    long total = 0;
    for (ssize_t got = 0; (got = ::read(read_end.get(), buffer.data(), buffer.size())) > 0;) {
        total += got;
    }
    expect_success(pid, "cat");
    if (total != stream_bytes) die("the pipe lost bytes");
}

void measure_stream(const std::string& bwrap_socket, const std::string& workspace) {
    const std::string log = write_log(workspace);
    Words words{"/usr/bin/cat"};
    words.insert(words.end(), stream_file_count, log);
    const std::string line = spawn_line(words, workspace);
    const std::string counted = "\"stdout\":" + std::to_string(stream_bytes);
    std::vector<Case> cases{
        {"raw pipe", [&] { read_raw_pipe(words); }, {}},
        {"socket of mechad", [&] { expect_in(call(bwrap_socket, line), counted); }, {}},
    };
    take_turns(cases, stream_rounds, 1);

    const double ratio = median(cases[0]) / median(cases[1]);
    std::printf("\n1 GiB of text on stdout: raw pipe %.0f MB/s, through mechad (bwrap) %.0f MB/s\n",
                static_cast<double>(stream_bytes) / median(cases[0]) / 1e6,
                static_cast<double>(stream_bytes) / median(cases[1]) / 1e6);
    std::printf("through mechad / raw pipe        %5.2f   target >= 0.30   %s\n", ratio,
                verdict(ratio >= 0.3));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) die("usage: mechad-bench NONE_SOCKET BWRAP_SOCKET WORKSPACE ROUNDS");
    const std::string workspace = argv[3];
    const int rounds = std::atoi(argv[4]);
    if (rounds < 1) die("ROUNDS is a positive number");
    measure_spawns(argv[1], argv[2], workspace, rounds);
    measure_stream(argv[2], workspace);
    return 0;
}
