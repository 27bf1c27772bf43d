// SPDX-License-Identifier: MIT
#include "daemon/preflight/scratch.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view directory_prefix = "preflight-";
constexpr std::string_view canary_prefix = "/.mechad-canary-";
constexpr std::string_view mark_prefix = "/.mechad-mark-";
constexpr std::size_t probe_bytes_max = std::size_t{8} << 20;
constexpr std::size_t mark_bytes_max = std::size_t{64} << 10;
// A canary without a lock may be one that another daemon is about to lock.
constexpr time_t unlocked_age_s = 60;

std::string in(const std::string& directory, std::string_view prefix, std::string_view name) {
    return directory + std::string(prefix) + std::string(name);
}

// Held until the descriptor is closed, by death too. Empty when somebody else holds it.
os::UniqueFd try_lock(const std::string& path, int flags) {
    os::UniqueFd lock(
        ::open(path.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.reset();
    return lock;
}

bool exists(const std::string& path) {
    struct stat found {};
    return ::lstat(path.c_str(), &found) == 0;
}

std::string contents_of(const std::string& path) {
    const auto read = os::read_file(path, mark_bytes_max);
    return read ? *read : std::string();
}

bool is_below(const std::string& path, const std::vector<std::string>& directories) {
    return std::any_of(directories.begin(), directories.end(), [&](const std::string& directory) {
        return path.starts_with(directory + "/");
    });
}

// Of a file that nobody may have finished making yet.
bool is_old(const struct stat& found) { return ::time(nullptr) - found.st_mtime >= unlocked_age_s; }

void remove_files(const std::vector<std::string>& paths) {
    for (const auto& path : paths) (void)::unlink(path.c_str());
}

// All that one scratch may have left outside of its directory.
std::vector<std::string> paths_for(const ScratchGround& ground, std::string_view name) {
    std::vector<std::string> paths;
    for (const auto* directories : {&ground.homes, &ground.temporary, &ground.system}) {
        for (const auto& directory : *directories) {
            paths.push_back(in(directory, canary_prefix, name));
            paths.push_back(in(directory, mark_prefix, name));
        }
    }
    return paths;
}

// Canaries of daemons that had another state directory.
void sweep_canaries(const std::string& directory) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(directory, ignored)) {
        const std::string name = "/" + entry.path().filename().string();
        if (!name.starts_with(canary_prefix) && !name.starts_with(mark_prefix)) continue;
        struct stat found {};
        if (::lstat(entry.path().c_str(), &found) != 0 || found.st_uid != ::geteuid()) continue;
        if (!S_ISREG(found.st_mode) || !is_old(found)) continue;
        if (try_lock(entry.path(), 0)) (void)::unlink(entry.path().c_str());
    }
}

}  // namespace

Result<Scratch> Scratch::plant(const ScratchGround& ground, const std::string& probe_binary) {
    Scratch scratch;
    scratch.name_ = os::random_hex(8);
    const std::string directory =
        ground.state + "/" + std::string(directory_prefix) + scratch.name_;
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
    scratch.secret_ = os::random_hex(16);
    const auto nonce = os::write_new_file(scratch.workspace_ + "/nonce", scratch.nonce_, 0600);
    if (!nonce) return nonce.error();
    const auto program = os::read_file(probe_binary, probe_bytes_max);
    if (!program) return program.error();
    if (auto wrote = os::write_new_file(scratch.probe(), *program, 0700); !wrote) {
        return wrote.error();
    }
    if (auto planted = scratch.plant_canaries(ground); !planted) return planted.error();
    return scratch;
}

Result<void> Scratch::plant_canaries(const ScratchGround& ground) {
    for (const auto& home : ground.homes) {
        const std::string path = in(home, canary_prefix, name_);
        home_canaries_.push_back(path);
        outside_marks_.push_back(in(home, mark_prefix, name_));
        outside_marks_.push_back(path);
        // Under its other names it is there already.
        if (contents_of(path) == secret_) continue;
        if (auto wrote = os::write_new_file(path, secret_, 0600); !wrote) {
            return Error(ErrorKind::preflight_failed,
                         "nothing can be proved about the home: " + wrote.error().message(), {},
                         "make " + home + " writable for this user");
        }
        canary_locks_.push_back(try_lock(path, 0));
    }
    for (const auto& directory : ground.temporary) {
        const std::string path = in(directory, canary_prefix, name_);
        // One that is not to be written holds nothing new of this user either.
        if (!os::write_new_file(path, secret_, 0600)) continue;
        tmp_canaries_.push_back(path);
        canary_locks_.push_back(try_lock(path, 0));
    }
    temporary_ = ground.temporary;
    for (const auto& directory : ground.temporary) {
        tmp_marks_.push_back(in(directory, mark_prefix, name_));
    }
    outside_marks_.push_back(directory_ + "/mark");
    for (const auto& directory : ground.system) {
        if (exists(directory)) outside_marks_.push_back(in(directory, mark_prefix, name_));
    }
    return {};
}

std::string Scratch::socket_path() const {
    return "/proc/self/fd/" + std::to_string(workspace_fd_.get()) + "/" + socket_name();
}

void Scratch::add_to(ProbeTargets& targets) const {
    targets.secret = secret_;
    targets.nonce_path = workspace_ + "/nonce";
    targets.nonce = nonce_;
    targets.workspace_mark = workspace_ + "/mark";
    targets.orphan_mark = workspace_ + "/orphan";
    targets.home_canaries = home_canaries_;
    targets.tmp_canaries = tmp_canaries_;
    targets.tmp_marks = tmp_marks_;
    for (const auto& path : outside_marks_) {
        auto& marks = is_below(path, temporary_) ? targets.shadowed_marks : targets.outside_marks;
        marks.push_back(path);
    }
    targets.unix_path = socket_name();
}

void Scratch::clear_marks() const {
    remove_files({workspace_ + "/mark", workspace_ + "/orphan"});
    remove_files(tmp_marks_);
}

void Scratch::look(const std::string& token, Sightings& seen) const {
    const auto is_marked = [&](const std::string& path) {
        return contents_of(path).find(token) != std::string::npos;
    };
    const auto is_intact = [&](const std::string& path) { return contents_of(path) == secret_; };
    seen.workspace_marked = is_marked(workspace_ + "/mark");
    seen.orphan_marked = is_marked(workspace_ + "/orphan");
    seen.orphan_alive = seen.orphan_marked && !try_lock(workspace_ + "/orphan", 0);
    seen.tmp_marked = std::any_of(tmp_marks_.begin(), tmp_marks_.end(), exists);
    seen.outside_marked = std::any_of(outside_marks_.begin(), outside_marks_.end(), is_marked);
    seen.canaries_intact = std::all_of(home_canaries_.begin(), home_canaries_.end(), is_intact) &&
                           std::all_of(tmp_canaries_.begin(), tmp_canaries_.end(), is_intact);
}

Scratch::~Scratch() {
    if (directory_.empty()) return;
    for (const auto* paths : {&home_canaries_, &tmp_canaries_, &tmp_marks_, &outside_marks_}) {
        remove_files(*paths);
    }
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
}

void Scratch::sweep(const ScratchGround& ground) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(ground.state, ignored)) {
        const std::string file = entry.path().filename();
        if (!file.starts_with(directory_prefix)) continue;
        const auto lock = try_lock(entry.path().string() + "/lock", 0);
        struct stat found {};
        const bool is_unlocked = ::lstat((entry.path().string() + "/lock").c_str(), &found) != 0 &&
                                 ::lstat(entry.path().c_str(), &found) == 0 && is_old(found);
        if (!lock && !is_unlocked) continue;
        remove_files(paths_for(ground, file.substr(directory_prefix.size())));
        fs::remove_all(entry.path(), ignored);
    }
    for (const auto& home : ground.homes) sweep_canaries(home);
    for (const auto& directory : ground.temporary) sweep_canaries(directory);
}

}  // namespace mechad
