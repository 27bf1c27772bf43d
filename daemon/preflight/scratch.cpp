// SPDX-License-Identifier: MIT
#include "daemon/preflight/scratch.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view directory_prefix = "preflight-";
constexpr std::size_t probe_bytes_max = std::size_t{8} << 20;

std::string canary_path_for(const std::string& home, std::string_view name) {
    return home.empty() ? std::string() : home + "/.mechad-canary-" + std::string(name);
}

void remove_planted(const std::string& directory, const std::string& canary) {
    std::error_code ignored;
    if (!canary.empty()) (void)::unlink(canary.c_str());
    fs::remove_all(directory, ignored);
}

// Held until the descriptor is closed, by death too. Empty when somebody else holds it.
os::UniqueFd try_lock(const std::string& path, int flags) {
    os::UniqueFd lock(::open(path.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.reset();
    return lock;
}

}  // namespace

Result<Scratch> Scratch::plant(const std::string& state, const std::string& home,
                               const std::string& probe_binary) {
    Scratch scratch;
    const std::string name = os::random_hex(8);
    const std::string directory = state + "/" + std::string(directory_prefix) + name;
    if (auto made = os::make_private_directory(directory); !made) return made.error();
    scratch.directory_ = directory;  // from here on the destructor removes what is planted
    scratch.lock_ = try_lock(directory + "/lock", O_CREAT);
    if (!scratch.lock_) return Error(ErrorKind::internal, "cannot lock " + directory);

    scratch.workspace_ = directory + "/ws";
    if (auto made = os::make_private_directory(scratch.workspace_); !made) return made.error();
    auto opened = os::open_file(scratch.workspace_, O_PATH | O_DIRECTORY);
    if (!opened) return opened.error();
    scratch.workspace_fd_ = std::move(*opened);
    scratch.nonce_ = os::random_hex(16);
    scratch.canary_ = os::random_hex(16);
    if (auto wrote = os::write_new_file(scratch.nonce_path(), scratch.nonce_, 0600); !wrote) {
        return wrote.error();
    }
    const auto program = os::read_file(probe_binary, probe_bytes_max);
    if (!program) return program.error();
    if (auto wrote = os::write_new_file(scratch.probe(), *program, 0700); !wrote) {
        return wrote.error();
    }
    const std::string canary_path = canary_path_for(home, name);
    if (canary_path.empty()) return scratch;
    if (auto wrote = os::write_new_file(canary_path, scratch.canary_, 0600); !wrote) {
        return wrote.error();
    }
    scratch.canary_path_ = canary_path;
    return scratch;
}

std::string Scratch::socket_path() const {
    return "/proc/self/fd/" + std::to_string(workspace_fd_.get()) + "/" + socket_name;
}

Scratch::~Scratch() {
    if (!directory_.empty()) remove_planted(directory_, canary_path_);
}

void Scratch::sweep(const std::string& state, const std::string& home) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(state, ignored)) {
        const std::string file = entry.path().filename();
        if (!file.starts_with(directory_prefix)) continue;
        const std::string lock_path = entry.path().string() + "/lock";
        if (!try_lock(lock_path, 0)) continue;
        remove_planted(entry.path(), canary_path_for(home, file.substr(directory_prefix.size())));
    }
}

}  // namespace mechad
