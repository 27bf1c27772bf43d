// SPDX-License-Identifier: MIT
#include "daemon/preflight/scratch.hpp"

#include <fcntl.h>
#include <mqueue.h>
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
constexpr std::string_view queue_prefix = "/mechad-canary-";
constexpr std::size_t name_bytes = 8;
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

// Only a name that we can have given.
bool is_name(std::string_view name) {
    return name.size() == 2 * name_bytes &&
           name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool exists(const std::string& path) {
    struct stat found {};
    return ::lstat(path.c_str(), &found) == 0;
}

// Of a regular file of ours; nothing of any other, which somebody else may have put there.
std::string contents_of(const std::string& path) {
    const os::UniqueFd file(
        ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    struct stat found {};
    if (!file || ::fstat(file.get(), &found) != 0) return {};
    if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid()) return {};
    std::string text(mark_bytes_max, '\0');
    const ssize_t got = ::read(file.get(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
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

// Where one scratch may have left a file of that kind.
std::vector<std::string> paths_for(const ScratchGround& ground, std::string_view prefix,
                                   std::string_view name) {
    std::vector<std::string> paths;
    for (const auto* directories : {&ground.homes, &ground.temporary, &ground.system}) {
        for (const auto& directory : *directories) paths.push_back(in(directory, prefix, name));
    }
    return paths;
}

// Calls `visit` with each entry's path. What cannot be read is left for the next time.
template <class Visit>
void visit_entries(const std::string& directory, Visit visit) {
    std::error_code error;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
        visit(entry->path());
    }
}

// Canaries of daemons that had another state directory.
void sweep_canaries(const std::string& directory) {
    visit_entries(directory, [](const fs::path& path) {
        const std::string name = "/" + path.filename().string();
        const auto is_ours = [&](std::string_view prefix) {
            return name.starts_with(prefix) && is_name(name.substr(prefix.size()));
        };
        if (!is_ours(canary_prefix) && !is_ours(mark_prefix)) return;
        struct stat found {};
        if (::lstat(path.c_str(), &found) != 0 || found.st_uid != ::geteuid()) return;
        if (!S_ISREG(found.st_mode) || !is_old(found)) return;
        if (try_lock(path, 0)) (void)::unlink(path.c_str());
    });
}

// What one scratch directory stands for, when its daemon is gone.
void sweep_scratch(const ScratchGround& ground, const fs::path& directory) {
    const std::string file = directory.filename();
    if (!file.starts_with(directory_prefix)) return;
    const std::string name = file.substr(directory_prefix.size());
    if (!is_name(name)) return;
    const std::string lock_path = directory.string() + "/lock";
    const auto lock = try_lock(lock_path, 0);
    struct stat found {};
    const bool is_unlocked = ::lstat(lock_path.c_str(), &found) != 0 &&
                             ::lstat(directory.c_str(), &found) == 0 && is_old(found);
    if (!lock && !is_unlocked) return;
    const auto mark_name = os::read_file(directory.string() + "/marks", 2 * name_bytes);
    remove_files(paths_for(ground, canary_prefix, name));
    if (mark_name && is_name(*mark_name)) {
        remove_files(paths_for(ground, mark_prefix, *mark_name));
    }
    (void)::mq_unlink((std::string(queue_prefix) + name).c_str());
    std::error_code ignored;
    fs::remove_all(directory, ignored);
}

}  // namespace

Result<Scratch> Scratch::plant(const ScratchGround& ground, const std::string& probe_binary) {
    Scratch scratch;
    scratch.name_ = os::random_hex(name_bytes);
    scratch.mark_name_ = os::random_hex(name_bytes);
    const std::string directory =
        ground.state + "/" + std::string(directory_prefix) + scratch.name_;
    if (auto made = os::make_private_directory(directory); !made) return made.error();
    scratch.directory_ = directory;  // from here on the destructor removes what is planted
    scratch.lock_ = try_lock(directory + "/lock", O_CREAT);
    if (!scratch.lock_) return Error(ErrorKind::internal, "cannot lock " + directory);

    // For the sweep.
    const auto noted = os::write_new_file(directory + "/marks", scratch.mark_name_, 0600);
    if (!noted) return noted.error();

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
        outside_marks_.push_back(in(home, mark_prefix, mark_name_));
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
        if (!exists(directory)) continue;
        const std::string path = in(directory, canary_prefix, name_);
        if (os::write_new_file(path, secret_, 0600)) {
            tmp_canaries_.push_back(path);
            canary_locks_.push_back(try_lock(path, 0));
        } else {
            // Read-only, or full: there may be half a file.
            (void)::unlink(path.c_str());
            has_unproved_tmp_ = true;
        }
    }
    has_unproved_home_ = ground.has_unproved_home;
    temporary_ = ground.temporary;
    for (const auto& directory : ground.temporary) {
        tmp_marks_.push_back(in(directory, mark_prefix, mark_name_));
    }
    outside_marks_.push_back(directory_ + "/mark");
    for (const auto& directory : ground.system) {
        if (exists(directory)) outside_marks_.push_back(in(directory, mark_prefix, mark_name_));
    }
    return {};
}

std::string Scratch::socket_path() const {
    return "/proc/self/fd/" + std::to_string(workspace_fd_.get()) + "/" + socket_name();
}

std::string Scratch::queue_name() const { return std::string(queue_prefix) + name_; }

void Scratch::add_to(ProbeTargets& targets) const {
    targets.secret = secret_;
    targets.nonce_path = workspace_ + "/nonce";
    targets.nonce = nonce_;
    targets.workspace_mark = workspace_ + "/mark";
    targets.orphan_mark = workspace_ + "/orphan";
    targets.home_canaries = home_canaries_;
    targets.has_unproved_home = has_unproved_home_;
    targets.tmp_canaries = tmp_canaries_;
    targets.has_unproved_tmp = has_unproved_tmp_;
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
    seen.tmp_marked = std::any_of(tmp_marks_.begin(), tmp_marks_.end(), is_marked);
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
    visit_entries(ground.state, [&](const fs::path& path) { sweep_scratch(ground, path); });
    for (const auto& home : ground.homes) sweep_canaries(home);
    for (const auto& directory : ground.temporary) sweep_canaries(directory);
}

}  // namespace mechad
