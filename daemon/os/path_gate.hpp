// SPDX-License-Identifier: MIT
// Opens what a path names, once, and says where it lies. Every later check and every mount is
// about the descriptor, so that nothing is decided by a name that may mean something else by then.
// What is allowed is not decided here (see forbidden_places.hpp and policy.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/os/host_facts.hpp"
#include "daemon/os/unique_fd.hpp"
#include "proto/result.hpp"

namespace mechad::os {

// An opened directory or regular file whose path had no symbolic link in it.
struct Place {
    std::string path;  // clean, as clean_path makes it
    UniqueFd fd;       // O_PATH
    FileId id;
    std::uint64_t mount = 0;  // that it is on, as MountTable names it
    // The place itself, then each ancestor up to "/", across mount points.
    std::vector<FileId> lineage;
    bool is_directory = true;
};

// True for `ancestor` itself and for everything inside it.
bool lies_in(const Place& place, const FileId& ancestor);

enum class PlaceType { directory, directory_or_file };

// The errors below have kind bad_workspace and no field; who asks for something else than a
// workspace says so.

// Takes out "//", "/./" and a trailing "/" or "/.": without symbolic links in the path, none of
// them changes what it names. Refuses what is not absolute, holds NUL or "..", or is longer than
// the kernel takes.
Result<std::string> clean_path(std::string_view path);

// The directory itself, then each ancestor up to "/", across mount points. As of now: what is held
// open may have been renamed since.
Result<std::vector<FileId>> find_lineage(const UniqueFd& directory);

// The path as of now, without links; with " (deleted)" behind it when it has none any more. Empty:
// the kernel does not tell.
std::string find_path(const UniqueFd& fd);

// Follows no link of any kind; a refusal's hint names the path to use instead. A directory must
// be readable and searchable, a file readable, by the effective user.
Result<Place> open_place(std::string_view path, PlaceType accepted);

}  // namespace mechad::os
