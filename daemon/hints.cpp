// SPDX-License-Identifier: MIT
#include "daemon/hints.hpp"

#include <algorithm>
#include <array>

#include "daemon/os/path_text.hpp"
#include "daemon/place_names.hpp"
#include "daemon/stderr_complaints.hpp"

namespace mechad {

namespace {

using Hint = std::optional<std::string>;

// Anywhere in a path in small letters that ends in "/". Wide on purpose: a hint that is missing
// costs a look, one too many a key.
constexpr auto secret_words = std::to_array<std::string_view>(
    {// What it is for: key, keys.txt, keyring, apikey, passphrase, kubeconfig, kdbx.
     "key", "kdb", "secret", "token", "pass", "cred", "cert", "wallet", "cookie", "shadow",
     "private", "vault", "kube", "login", "auth", "session",
     // Who has it: id_rsa and its kind, agents, browsers, which keep logins and cookies.
     "/id_", "ssh", "gnupg", "gpg", "pgp", "/snap/", "firefox", "mozilla", "thunderbird",
     "chromium", "chrome", "brave", "/opera", "vivaldi",
     // What it is written in.
     ".age/", ".asc/", ".jks/", ".p12/", ".p8/", ".pem/", ".pfx/", ".ppk/", ".ovpn/", ".jwk"});

// Directories from which programs outside a box run what is there, or take it for a task.
constexpr auto run_from_names = std::to_array<std::string_view>(
    {"bin", "sbin", "libexec", "spool", "autostart", "init.d", "profile.d", "hooks"});
constexpr auto run_from_words = std::to_array<std::string_view>({"cron", "systemd"});

// Where installers put programs below a home, and no keys beside them.
struct Installed {
    std::string_view program;
    std::string_view directory;
};
constexpr auto installed_programs = std::to_array<Installed>({
    {"cargo", ".cargo/bin"},
    {"rustc", ".cargo/bin"},
    {"rustup", ".cargo/bin"},
    {"uv", ".local/bin"},
    {"uvx", ".local/bin"},
    {"pipx", ".local/bin"},
    {"poetry", ".local/bin"},
    {"ruff", ".local/bin"},
    {"go", "go/bin"},
    {"gopls", "go/bin"},
    {"deno", ".deno/bin"},
    {"bun", ".bun/bin"},
    {"node", ".nvm/versions"},
    {"npm", ".nvm/versions"},
    {"npx", ".nvm/versions"},
    {"python", ".pyenv/shims"},
    {"ruby", ".rbenv/shims"},
    {"java", ".sdkman/candidates"},
});

// --- whether a path may be offered ------------------------------------------------------------

bool lies_in_any(std::string_view path, const std::vector<std::string>& directories) {
    return std::any_of(directories.begin(), directories.end(),
                       [path](const std::string& each) { return os::is_beneath(path, each); });
}

std::string lower_case(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    });
    return text;
}

bool is_hidden(const std::string& path) { return path.find("/.") != std::string::npos; }

// Settings and credentials of a program are hidden, mostly; others have telling names.
bool looks_secret(const std::string& path) {
    if (is_hidden(path) || find_credential_name(path)) return true;
    const std::string name = lower_case(path) + "/";
    return std::any_of(secret_words.begin(), secret_words.end(), [&name](std::string_view word) {
        return name.find(word) != std::string::npos;
    });
}

// Who may write there may have programs outside run what he likes.
bool is_run_from_outside(const std::string& path) {
    const std::string name = lower_case(path) + "/";
    const auto is_part = [&name](std::string_view part) {
        return name.find("/" + std::string(part) + "/") != std::string::npos;
    };
    const auto is_within = [&name](std::string_view word) {
        return name.find(word) != std::string::npos;
    };
    return is_hidden(path) || std::any_of(run_from_names.begin(), run_from_names.end(), is_part) ||
           std::any_of(run_from_words.begin(), run_from_words.end(), is_within);
}

// Homes are known from the list of users, which need not be complete.
bool is_in_other_home(const std::string& path, const std::string& home) {
    if (!home.empty() && os::is_beneath(path, home)) return false;
    return path.starts_with("/home/") || path.starts_with("/root/");
}

const BoundPath* find_bind(const std::string& path, const std::vector<BoundPath>& binds) {
    const auto found = std::find_if(binds.rbegin(), binds.rend(), [&path](const BoundPath& bind) {
        return os::is_beneath(path, bind.path);
    });
    return found == binds.rend() ? nullptr : &*found;
}

// The box has it as a directory that leads to what is shown.
bool holds_any(const std::string& path, const std::vector<BoundPath>& binds) {
    return std::any_of(binds.begin(), binds.end(),
                       [&path](const BoundPath& bind) { return os::is_beneath(bind.path, path); });
}

// --- sentences --------------------------------------------------------------------------------

constexpr const char* run_from_outside_hint =
    "Perhaps the command wanted to write where programs outside run from; what its message names "
    "is not offered here";

// Of a path that a box does not show.
Hint offer(const std::string& path, bool is_to_be_written, const BoxView& box) {
    const auto fault = box.find_fault(path);
    if (looks_secret(path) || (fault && find_credential_name(*fault))) {
        return "Perhaps the command wanted settings or keys from outside the workspace; what its "
               "message names is not offered here";
    }
    if (is_in_other_home(path, box.home)) {
        return "Perhaps the command wanted something from another home directory; what its message "
               "names is not offered here";
    }
    const std::string verb = is_to_be_written ? "write " : "read ";
    if (fault) {
        return "Perhaps the command wanted to " + verb + path + ", which no key opens: " + *fault;
    }
    if (is_to_be_written && is_run_from_outside(path)) return run_from_outside_hint;
    const std::string key = is_to_be_written ? "sandbox.writable" : "sandbox.readable";
    return "Perhaps the command needs to " + verb + path +
           ", which its box does not show; if that is there and not secret, " + key +
           " can name it";
}

Hint hint_for_read_only(const std::string& path, const BoxView& box) {
    if (const BoundPath* const bind = find_bind(path, box.binds)) {
        if (bind->access == Access::read_write || looks_secret(path)) return std::nullopt;
        if (is_run_from_outside(path)) return run_from_outside_hint;
        return "Perhaps the command needs to write " + path +
               ", which an entry of sandbox.readable shows; under sandbox.writable every run could "
               "change it";
    }
    if (lies_in_any(path, box.system)) {
        return "Perhaps the command installs something for the whole system, which is read-only in "
               "every box; the workspace and /tmp can be written";
    }
    return offer(path, true, box);
}

Hint hint_for_path(const StderrComplaint& complaint, const BoxView& box) {
    const std::string& path = complaint.path;
    if (complaint.kind == Complaint::read_only) return hint_for_read_only(path, box);
    const bool is_shown = find_bind(path, box.binds) != nullptr || lies_in_any(path, box.system);
    if (is_shown || holds_any(path, box.binds)) return std::nullopt;
    if (lies_in_any(path, box.private_directories)) {
        if (complaint.kind != Complaint::missing || looks_secret(path)) return std::nullopt;
        return "Perhaps " + path +
               " was made outside this run, which has a private one of that directory; the "
               "workspace is shared between runs";
    }
    return offer(path, false, box);
}

Hint hint_for_program(const std::string& program, const BoxView& box) {
    const std::string name = program.empty() ? "the program" : program;
    if (!box.is_confined) {
        return "Perhaps " + name +
               " is in a directory that PATH does not name: a command gets the PATH that mechad "
               "was "
               "started with, unless sandbox.env or the request sets it";
    }
    std::string where = "below the home directory";
    const auto* const known =
        std::find_if(installed_programs.begin(), installed_programs.end(),
                     [&program](const Installed& each) { return each.program == program; });
    if (known != installed_programs.end() && !box.home.empty()) {
        const std::string directory = box.home + "/" + std::string(known->directory);
        if (!box.find_fault(directory)) where = "in " + directory;
    }
    return "Perhaps " + name + " is installed where the box shows nothing, such as " + where +
           ": sandbox.readable can name its directory, and sandbox.env a PATH that has it";
}

Hint hint_for_network(const BoxView& box) {
    if (box.is_network_open) return std::nullopt;
    return std::string("Perhaps the command needs the network, which is closed for this run; ") +
           (box.may_open_network ? "a request may open it by \"network\":true"
                                 : "sandbox.network opens it for every run") +
           ", and then what the command reads can leave the machine";
}

Hint hint_for(const StderrComplaint& complaint, const BoxView& box) {
    if (complaint.kind == Complaint::no_program) return hint_for_program(complaint.program, box);
    if (!box.is_confined) return std::nullopt;  // nothing is hidden from it
    switch (complaint.kind) {
        case Complaint::missing:
        case Complaint::denied:
        case Complaint::read_only: return hint_for_path(complaint, box);
        case Complaint::no_network: return hint_for_network(box);
        case Complaint::refused_by_self:
            if (box.is_network_open) return std::nullopt;
            return "Perhaps a service of this machine was meant: with the network closed a run has "
                   "a loopback of its own, where nobody else listens";
        case Complaint::no_socket:
            return "Perhaps a Unix socket was meant, as agents, databases and container engines "
                   "have one: no confined command may connect to it, and no key opens that";
        case Complaint::no_repository:
            return "Perhaps the repository lies above the workspace, where the command sees "
                   "nothing; its top directory can be the workspace";
        case Complaint::no_program: break;
    }
    return std::nullopt;
}

}  // namespace

std::vector<std::string> make_hints(const FailedCommand& command, const BoxView& box) {
    const bool is_failed = command.exit_code != 0 || command.exit_signal != 0;
    std::vector<std::string> hints;
    if (!is_failed || box.binds.empty()) return hints;
    hints.reserve(hints_max);
    for (const auto& complaint : read_complaints(command.stderr_lines, command.exit_code)) {
        if (hints.size() == hints_max) break;
        auto hint = hint_for(complaint, box);
        // A path that is cut short would be another one.
        if (!hint || hint->size() > hint_bytes_max) continue;
        if (std::find(hints.begin(), hints.end(), *hint) == hints.end()) {
            hints.push_back(*std::move(hint));
        }
    }
    return hints;
}

}  // namespace mechad
