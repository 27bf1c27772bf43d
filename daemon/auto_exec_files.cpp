// SPDX-License-Identifier: MIT
#include "daemon/auto_exec_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "daemon/os/printable.hpp"

namespace mechad {

namespace {

constexpr std::size_t name_bytes_max = 80;

struct Listed {
    const char* name;
    const char* reader;
};

constexpr const char* by_git = "by which git can run programs";
constexpr const char* by_shell = "which a shell runs whose home this is";
constexpr const char* by_editor = "by which an editor can run programs";
constexpr const char* by_agent = "by which an agent or its tools can run programs";
constexpr const char* by_npm = "by which npm can run programs";
constexpr const char* by_login = "by which programs choose servers and logins";

constexpr std::string_view sample_suffix = ".sample";

constexpr auto files = std::to_array<Listed>({
    {".git", by_git},  // counts as a file or a link, which name another repository
    {".git/config", by_git},
    {".git/config.worktree", by_git},
    {".git/commondir", by_git},
    {".gitconfig", by_git},
    {".envrc", "which direnv runs once it is allowed"},
    {".bash_profile", by_shell},
    {".bash_login", by_shell},
    {".bashrc", by_shell},
    {".profile", by_shell},
    {".zshenv", by_shell},
    {".zprofile", by_shell},
    {".zshrc", by_shell},
    {".mcp.json", by_agent},
    {".npmrc", by_npm},
    {".netrc", by_login},
});

constexpr auto directories = std::to_array<Listed>({
    {".git/hooks", "which git runs"},
    {".husky", "which git runs where husky is set up"},
    {".vscode", by_editor},
    {".idea", by_editor},
    {".devcontainer", by_editor},
    {".claude", by_agent},
    {".codex", by_agent},
    {".cursor", by_agent},
});

bool is_directory(const std::optional<os::FileStamp>& stamp) {
    return stamp && S_ISDIR(stamp->mode);
}

// A directory changes with whatever is made in it; what counts there is listed.
bool is_changed(const std::optional<os::FileStamp>& before,
                const std::optional<os::FileStamp>& after) {
    return after && !is_directory(after) && before != after;
}

// What may not be executed is no hook.
bool is_hook(const os::FileStamp& stamp) {
    constexpr mode_t executable = S_IXUSR | S_IXGRP | S_IXOTH;
    return (stamp.mode & executable) != 0;
}

bool is_in_git(std::string_view name) { return name.starts_with(".git/"); }

}  // namespace

AutoExecFiles AutoExecFiles::look(const os::UniqueFd& workspace) {
    AutoExecFiles found;
    found.files_.reserve(files.size());
    bool has_git = true;  // a workspace without a repository is spared what would lie in it
    const auto look_at = [&](const char* name) {
        if (!has_git && is_in_git(name)) return std::optional<os::FileStamp>();
        return os::look_beneath(workspace, name);
    };
    for (const Listed& file : files) {
        found.files_.push_back(look_at(file.name));
        const bool is_git = std::string_view(file.name) == ".git";
        if (is_git) has_git = is_directory(found.files_.back());
    }
    found.directories_.reserve(directories.size());
    for (const Listed& listed : directories) {
        Directory directory{.itself = look_at(listed.name), .listing = {}};
        if (is_directory(directory.itself)) {
            // The samples that come with a repository are no hooks.
            const auto ignored = is_in_git(listed.name) ? sample_suffix : std::string_view();
            directory.listing = os::list_beneath(workspace, listed.name, listed_max, ignored);
        }
        found.directories_.push_back(std::move(directory));
    }
    found.is_blind_ = !os::look_beneath(workspace, ".");
    return found;
}

void AutoExecFiles::add_files(const AutoExecFiles& before, std::vector<Found>& found) const {
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (!is_changed(before.files_[i], files_[i])) continue;
        found.push_back({files[i].name, files[i].reader, !before.files_[i]});
    }
}

void AutoExecFiles::add_listed(const AutoExecFiles& before, std::vector<Found>& found) const {
    for (std::size_t i = 0; i < directories.size(); ++i) {
        const Listed& listed = directories[i];
        const Directory& then = before.directories_[i];
        const Directory& now = directories_[i];
        const bool is_cut = then.listing.is_cut || now.listing.is_cut;
        if (is_changed(then.itself, now.itself) || (is_cut && then.itself != now.itself)) {
            found.push_back({listed.name, listed.reader, !then.itself});
        }
        if (is_cut) continue;
        for (const auto& [name, stamp] : now.listing.entries) {
            const auto old = then.listing.entries.find(name);
            const bool is_new = old == then.listing.entries.end();
            if (!is_new && old->second == stamp) continue;
            const bool is_of_hooks = std::string_view(listed.name) == ".git/hooks";
            if (is_of_hooks && !is_hook(stamp)) continue;
            found.push_back({std::string(listed.name) + "/" + name, listed.reader, is_new});
        }
    }
}

std::vector<std::string> AutoExecFiles::notes_since(const AutoExecFiles& before) const {
    if (is_blind_ || before.is_blind_) {
        return {
            "whether files that programs outside act on were changed cannot be told: mechad "
            "could open nothing"};
    }
    std::vector<Found> found;
    add_files(before, found);
    add_listed(before, found);
    std::vector<std::string> notes;
    notes.reserve(notes_max);
    for (const Found& file : found) {
        if (notes.size() + 1 == notes_max && found.size() > notes_max) {
            notes.push_back(std::to_string(found.size() - notes.size()) +
                            " more files that programs outside act on were created or changed "
                            "while the run lasted");
            break;
        }
        notes.push_back((file.is_new ? "created" : "changed") +
                        std::string(" while the run lasted: \"") +
                        os::printable(file.name, name_bytes_max) + "\", " + file.reader);
    }
    return notes;
}

}  // namespace mechad
