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
constexpr const char* as_bare =
    "by which git can run programs, as the workspace looks like a repository";
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
    {"HEAD", as_bare},
    {"config", as_bare},
    {"config.worktree", as_bare},
    {"commondir", as_bare},
    {".gitconfig", by_git},
    {".envrc", "which direnv runs once it is allowed"},
    {".bash_profile", by_shell},
    {".bash_login", by_shell},
    {".bash_logout", by_shell},
    {".bashrc", by_shell},
    {".kshrc", by_shell},
    {".profile", by_shell},
    {".zlogin", by_shell},
    {".zlogout", by_shell},
    {".zshenv", by_shell},
    {".zprofile", by_shell},
    {".zshrc", by_shell},
    {".mcp.json", by_agent},
    {".npmrc", by_npm},
    {".netrc", by_login},
});

constexpr auto directories = std::to_array<Listed>({
    {".git/hooks", "which git runs"},
    {"hooks", "which git runs, as the workspace looks like a repository"},
    {".husky", "which git runs where husky is set up"},
    {".vscode", by_editor},
    {".idea", by_editor},
    {".devcontainer", by_editor},
    {".claude", by_agent},
    {".codex", by_agent},
    {".cursor", by_agent},
    {".claude/hooks", by_agent},
    {".husky/_", "which git runs where husky is set up"},  // last: written by each npm install
});

bool is_directory(const os::Sight& sight) { return sight.stamp && S_ISDIR(sight.stamp->mode); }

// A directory also changes with whatever is made in it, and what counts there is listed.
bool is_changed(const os::Sight& before, const os::Sight& after) {
    if (!after.stamp || before.is_hidden) return false;
    if (!is_directory(after)) return before.stamp != after.stamp;
    return before.stamp &&
           (before.stamp->id != after.stamp->id || before.stamp->mode != after.stamp->mode);
}

// What may not be executed is no hook.
bool is_hook(const os::FileStamp& stamp) {
    constexpr mode_t executable = S_IXUSR | S_IXGRP | S_IXOTH;
    return (stamp.mode & executable) != 0;
}

bool is_in_git(std::string_view name) { return name.starts_with(".git/"); }
bool is_in_bare(std::string_view name) { return !name.starts_with("."); }
bool is_of_hooks(std::string_view name) { return name == ".git/hooks" || name == "hooks"; }

bool is_listed_itself(std::string_view name) {
    return std::any_of(directories.begin(), directories.end(),
                       [name](const Listed& listed) { return listed.name == name; });
}

// At least where git takes the directory itself for a repository, which may have its objects and
// refs elsewhere; it looks at none of them more closely.
bool looks_bare(const os::UniqueFd& directory) {
    const auto has = [&directory](const char* name) {
        const os::Sight sight = os::look_beneath(directory, name);
        return sight.stamp || sight.is_hidden;
    };
    return has("HEAD") && (has("commondir") || (has("objects") && has("refs")));
}

// What hides a name may be the directory that it lies in, and hides the others there as well.
std::string top_of(std::string_view name) { return std::string(name.substr(0, name.find('/'))); }

template <class Found>
bool has_name(const std::vector<Found>& found, std::string_view name) {
    return std::any_of(found.begin(), found.end(),
                       [name](const Found& each) { return each.name == name; });
}

}  // namespace

AutoExecFiles AutoExecFiles::look(const os::UniqueFd& workspace) {
    AutoExecFiles found;
    found.is_bare_ = looks_bare(workspace);
    found.files_.reserve(files.size());
    bool has_git = true;  // a workspace without a repository is spared what would lie in it
    const auto look_at = [&](const char* name) {
        if (!has_git && is_in_git(name)) return os::Sight();
        if (!found.is_bare_ && is_in_bare(name)) return os::Sight();
        return os::look_beneath(workspace, name);
    };
    for (const Listed& file : files) {
        found.files_.push_back(look_at(file.name));
        const os::Sight& sight = found.files_.back();
        const bool is_git = std::string_view(file.name) == ".git";
        if (is_git) has_git = is_directory(sight) || sight.is_hidden;
    }
    found.directories_.reserve(directories.size());
    for (const Listed& listed : directories) {
        Directory directory{.itself = look_at(listed.name), .listing = {}};
        if (is_directory(directory.itself)) {
            // The samples that come with a repository are no hooks.
            const auto ignored = is_of_hooks(listed.name) ? sample_suffix : std::string_view();
            directory.listing = os::list_beneath(workspace, listed.name, listed_max, ignored);
        }
        found.directories_.push_back(std::move(directory));
    }
    found.is_blind_ = !os::look_beneath(workspace, ".").stamp;
    return found;
}

std::optional<AutoExecFiles::Fate> AutoExecFiles::find_doubt(const os::Sight& before,
                                                             const os::Sight& after) {
    if (after.is_hidden) return Fate::unseen_after;
    if (before.is_hidden && after.stamp) return Fate::unseen_before;
    return std::nullopt;
}

std::optional<AutoExecFiles::Fate> AutoExecFiles::find_doubt(const os::Listing& before,
                                                             const os::Listing& after) {
    if (after.is_hidden) return Fate::unseen_after;
    if (after.is_cut) return Fate::cut;
    if (after.entries.empty()) return std::nullopt;
    if (before.is_hidden) return Fate::unseen_before;
    return before.is_cut ? std::optional(Fate::cut) : std::nullopt;
}

// Of a repository that was none before nothing was looked at then, and it is told as a whole.
bool AutoExecFiles::is_comparable(const AutoExecFiles& before, const char* name) const {
    return !is_in_bare(name) || (is_bare_ && before.is_bare_);
}

void AutoExecFiles::add_doubts(const AutoExecFiles& before, std::vector<Found>& found) const {
    const auto add = [&found](std::string name, const char* reader, std::optional<Fate> fate) {
        if (fate && !has_name(found, name)) found.push_back({std::move(name), reader, *fate});
    };
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (!is_comparable(before, files[i].name)) continue;
        add(top_of(files[i].name), files[i].reader, find_doubt(before.files_[i], files_[i]));
    }
    for (std::size_t i = 0; i < directories.size(); ++i) {
        const Listed& listed = directories[i];
        const Directory& then = before.directories_[i];
        const Directory& now = directories_[i];
        if (!is_comparable(before, listed.name)) continue;
        add(top_of(listed.name), listed.reader, find_doubt(then.itself, now.itself));
        add(listed.name, listed.reader, find_doubt(then.listing, now.listing));
    }
}

void AutoExecFiles::add_changes(const AutoExecFiles& before, std::vector<Found>& found) const {
    const auto add = [&](const Listed& listed, const os::Sight& then, const os::Sight& now) {
        if (!is_comparable(before, listed.name)) return;
        if (!is_changed(then, now) || has_name(found, listed.name)) return;
        found.push_back({listed.name, listed.reader, then.stamp ? Fate::changed : Fate::created});
    };
    if (is_bare_ && !before.is_bare_) found.push_back({{}, by_git, Fate::became_bare});
    for (std::size_t i = 0; i < files.size(); ++i) {
        add(files[i], before.files_[i], files_[i]);
    }
    for (std::size_t i = 0; i < directories.size(); ++i) {
        add(directories[i], before.directories_[i].itself, directories_[i].itself);
    }
}

void AutoExecFiles::add_listed(const AutoExecFiles& before, std::vector<Found>& found) const {
    for (std::size_t i = 0; i < directories.size(); ++i) {
        const Listed& listed = directories[i];
        const Directory& then = before.directories_[i];
        const Directory& now = directories_[i];
        if (!is_comparable(before, listed.name) || find_doubt(then.itself, now.itself)) continue;
        if (find_doubt(then.listing, now.listing)) continue;
        for (const auto& [entry, stamp] : now.listing.entries) {
            const auto old = then.listing.entries.find(entry);
            const bool is_new = old == then.listing.entries.end();
            if (!is_new && old->second == stamp) continue;
            if (is_of_hooks(listed.name) && !is_hook(stamp)) continue;
            std::string name = std::string(listed.name) + "/" + entry;
            if (is_listed_itself(name)) continue;
            found.push_back(
                {std::move(name), listed.reader, is_new ? Fate::created : Fate::changed});
        }
    }
}

std::string AutoExecFiles::sentence_of(const Found& found) {
    const std::string what = os::quoted(found.name, name_bytes_max) + ", " + found.reader;
    std::string doubt = "what was changed in " + what + ", cannot be told: ";
    switch (found.fate) {
        case Fate::created: return "created while the run lasted: " + what;
        case Fate::changed: return "changed while the run lasted: " + what;
        case Fate::became_bare:
            return std::string(
                       "created while the run lasted: what looks like a bare repository at "
                       "the top of the workspace, ") +
                   found.reader;
        case Fate::unseen_before:
            return doubt + "mechad could not look at all of it before the command ran";
        case Fate::unseen_after:
            return doubt + "mechad could not look at all of it after the command had run";
        case Fate::cut:
            return doubt + "it has or had more than " + std::to_string(listed_max) + " entries";
    }
    return doubt;
}

std::vector<std::string> AutoExecFiles::notes_since(const AutoExecFiles& before) const {
    if (is_blind_ || before.is_blind_) {
        return {
            "whether files that programs outside act on were changed cannot be told: mechad "
            "could open nothing in the workspace"};
    }
    std::vector<Found> found;
    add_doubts(before, found);
    add_changes(before, found);
    add_listed(before, found);
    std::vector<std::string> notes;
    notes.reserve(notes_max);
    for (const Found& file : found) {
        if (notes.size() + 1 == notes_max && found.size() > notes_max) {
            notes.push_back(std::to_string(found.size() - notes.size()) +
                            " more files that programs outside act on were created or changed "
                            "while the run lasted, or could not be looked at");
            break;
        }
        notes.push_back(sentence_of(file));
    }
    return notes;
}

}  // namespace mechad
