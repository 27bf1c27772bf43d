// SPDX-License-Identifier: MIT
// Which file is the configuration, and how it is read. config.cpp says what it means.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "daemon/config.hpp"
#include "daemon/os/printable.hpp"
#include "daemon/os/syscalls.hpp"

namespace mechad {
namespace {

constexpr std::size_t file_bytes_max = std::size_t{1} << 20;

Error file_error(const std::string& path, std::string_view why, std::string hint = {}) {
    return Error(ErrorKind::invalid_request, os::printable(path) + ": " + std::string(why), {},
                 std::move(hint));
}

// Who can write the file decides what every command may do.
std::optional<Error> find_foreign_hand(const std::string& path, const struct stat& file) {
    if (file.st_uid != 0 && file.st_uid != ::geteuid()) {
        return file_error(path,
                          "belongs to uid " + std::to_string(file.st_uid) +
                              "; it must belong to root or to the user that mechad runs as",
                          "chown it, or make a copy");
    }
    if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return file_error(path, "can be written by other users",
                          "chmod go-w " + os::printable(path));
    }
    return std::nullopt;
}

// nullopt: nothing of that name. A link to nowhere exists, and is found unreadable later.
Result<std::optional<std::string>> find_candidate(std::string path) {
    struct stat found {};
    if (::lstat(path.c_str(), &found) == 0) return std::optional(std::move(path));
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<std::string>();
    return file_error(path, "cannot be looked at: " + os::errno_text(errno));
}

}  // namespace

Result<Config> load_config(const std::string& path) {
    // Without O_NONBLOCK, opening a FIFO would wait for a writer.
    auto file = os::open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!file) return file_error(path, file.error().message());
    struct stat found {};
    if (::fstat(file->get(), &found) != 0 || !S_ISREG(found.st_mode)) {
        return file_error(path, "is not a regular file");
    }
    if (auto foreign = find_foreign_hand(path, found)) return *foreign;
    const auto text = os::read_file("/proc/self/fd/" + std::to_string(file->get()), file_bytes_max);
    if (!text) {
        return file_error(path, found.st_size > static_cast<off_t>(file_bytes_max)
                                    ? "is larger than 1 MiB"
                                    : text.error().message());
    }
    auto config = parse_config(*text, path);
    if (config) config->path = path;
    return config;
}

Result<std::optional<std::string>> find_config(const ConfigSearch& search) {
    if (search.explicit_path) {
        auto found = find_candidate(*search.explicit_path);
        if (found && !*found) {
            return file_error(*search.explicit_path, "does not exist",
                              "create it, or leave out --config and $MECHAD_CONFIG");
        }
        return found;
    }
    std::string user_directory;
    if (!search.home.empty()) user_directory = search.home + "/.config";
    // The base directory specification has relative paths ignored.
    if (search.xdg_config_home.starts_with('/')) user_directory = search.xdg_config_home;
    if (!user_directory.empty()) {
        auto found = find_candidate(user_directory + "/mechad/config.toml");
        if (!found || *found) return found;
    }
    return find_candidate("/etc/mechad/config.toml");
}

}  // namespace mechad
