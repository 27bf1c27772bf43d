// SPDX-License-Identifier: MIT
#include "daemon/stderr_complaints.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace mechad {

namespace {

constexpr std::size_t lines_max = 64;      // from the end
constexpr std::size_t lookback_lines = 3;  // for a path that stands above its complaint
constexpr std::size_t line_paths_max = 4;

// A phrase in capitals is the name of an error and is looked for as it is, any other in whatever
// case it is written.
constexpr auto network_phrases = std::to_array<std::string_view>({
    "could not resolve host",  // curl, git and ssh, which says hostname
    "could not resolve proxy",
    "couldn't resolve host",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "no address associated with hostname",
    "unable to resolve host",
    "failed to lookup address",
    "no such host",
    "unknownhostexception",
    "getaddrinfo",
    "network is unreachable",
    "network unreachable",
    "no route to host",
    "EAI_AGAIN",
    "ENOTFOUND",
    "ENETUNREACH",
});
constexpr auto socket_phrases = std::to_array<std::string_view>({
    "docker daemon",
    "docker api",
    "docker.sock",
    "authentication agent",
    "connecting to agent",
    "gpg-agent",
    "failed to connect to bus",
    "d-bus",
    "unix:/",
    "on socket \"",
    "through socket '",
    "socket: operation not permitted",
    "socket: permission denied",
});
// With the network closed only the loopback can refuse; whether it is, is for others to know.
constexpr auto refused_phrases =
    std::to_array<std::string_view>({"connection refused", "ECONNREFUSED"});
constexpr auto unconnected_phrases =
    std::to_array<std::string_view>({"failed to connect", "could not connect", "couldn't connect"});
constexpr auto loopback_names =
    std::to_array<std::string_view>({"127.0.0.1", "localhost", "::1", "0.0.0.0"});
constexpr auto read_only_phrases = std::to_array<std::string_view>(
    {"read-only file system", "readonlyfilesystemexception", "EROFS"});
constexpr auto denied_phrases =
    std::to_array<std::string_view>({"permission denied", "accessdeniedexception", "EACCES"});
constexpr auto missing_phrases = std::to_array<std::string_view>({
    "no such file or directory",
    "nosuchfileexception",
    "filenotfoundexception",
    "does not exist",
    "can't cd to",
    "cannot find",
    "no rule to make target",
    "unable to open database",
    "unable to access jarfile",
    "ENOENT",
});

bool is_upper(char letter) { return letter >= 'A' && letter <= 'Z'; }

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& letter : result) {
        if (is_upper(letter)) letter = static_cast<char>(letter - 'A' + 'a');
    }
    return result;
}

struct Line {
    std::string_view text;
    std::string lowered;

    template <std::size_t size>
    bool says_any(const std::array<std::string_view, size>& phrases) const {
        return std::any_of(phrases.begin(), phrases.end(), [this](std::string_view phrase) {
            const std::string_view where = is_upper(phrase.front()) ? text : lowered;
            return where.find(phrase) != std::string_view::npos;
        });
    }
};

std::string_view trim(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool is_plain(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') ||
           std::string_view("/._-+@%~=,#").find(letter) != std::string_view::npos;
}

// --- paths ------------------------------------------------------------------------------------

constexpr std::string_view open_quote = "\xe2\x80\x98";   // ‘
constexpr std::string_view close_quote = "\xe2\x80\x99";  // ’

// What must follow a path for it to be whole: with anything else it may be the beginning of one.
bool is_ended(std::string_view before, std::string_view after) {
    if (before.ends_with(open_quote)) return after.starts_with(close_quote);
    const char opening = before.empty() ? ' ' : before.back();
    if (opening == '\'' || opening == '"') return after.starts_with(opening);
    if (opening == '`') return after.starts_with('`') || after.starts_with('\'');
    return after.empty() ||
           std::string_view(" :)]>;").find(after.front()) != std::string_view::npos;
}

bool is_beginning(std::string_view before) {
    return before.empty() || before.ends_with(open_quote) ||
           std::string_view(" \t:=([<'\"`").find(before.back()) != std::string_view::npos;
}

// Absolute, not "/", and without a part that another path could be written with.
bool is_clean(std::string_view path) {
    if (path.size() < 2 || path.size() > complaint_path_bytes_max) return false;
    const std::string bounded = std::string(path) + "/";
    for (const std::string_view part : {"//", "/./", "/../"}) {
        if (bounded.find(part) != std::string::npos) return false;
    }
    return true;
}

std::vector<std::string> paths_in(std::string_view line) {
    std::vector<std::string> paths;
    paths.reserve(line_paths_max);
    for (std::size_t at = line.find('/'); at != std::string_view::npos; at = line.find('/', at)) {
        std::size_t end = at;
        while (end < line.size() && is_plain(line[end])) ++end;
        const std::string_view before = line.substr(0, at);
        std::string_view path = line.substr(at, end - at);
        if (path.ends_with('.') || path.ends_with(',')) path.remove_suffix(1);  // the sentence's
        const std::string_view after = line.substr(end);
        const bool is_whole = is_beginning(before) && is_ended(before, after);
        if (path.ends_with('/')) path.remove_suffix(1);
        if (is_whole && is_clean(path)) paths.emplace_back(path);
        if (paths.size() == line_paths_max) break;
        at = std::max(end, at + 1);
    }
    return paths;
}

// --- programs ---------------------------------------------------------------------------------

std::string_view last_word(std::string_view text) {
    const std::size_t space = text.find_last_of(" \t");
    return space == std::string_view::npos ? text : text.substr(space + 1);
}

std::string_view unquoted(std::string_view word) {
    if (word.starts_with(open_quote) && word.ends_with(close_quote)) {
        word.remove_prefix(open_quote.size());
        word.remove_suffix(close_quote.size());
    }
    while (!word.empty() && (word.front() == '\'' || word.front() == '"')) word.remove_prefix(1);
    while (!word.empty() && (word.back() == '\'' || word.back() == '"')) word.remove_suffix(1);
    return word;
}

// A name without a directory, which is looked up by PATH; empty when it is not plain.
std::optional<StderrComplaint> no_program(std::string_view word) {
    word = unquoted(word);
    if (word.find('/') != std::string_view::npos) return std::nullopt;
    const bool is_usable = !word.empty() && word.size() <= complaint_program_bytes_max &&
                           std::all_of(word.begin(), word.end(), is_plain);
    return StderrComplaint{.kind = Complaint::no_program,
                           .program = std::string(is_usable ? word : std::string_view())};
}

// The word between the last ": " before `phrase` and `phrase`.
std::optional<StderrComplaint> program_before(std::string_view line, std::string_view phrase) {
    const std::size_t at = line.find(phrase);
    if (at == std::string_view::npos) return std::nullopt;
    return no_program(last_word(line.substr(0, at)));
}

// As shells, env, make, Node and Go say it.
std::optional<StderrComplaint> find_program(std::string_view line, int exit_code) {
    constexpr std::string_view zsh = "command not found: ";
    if (const auto at = line.find(zsh); at != std::string_view::npos) {
        return no_program(trim(line.substr(at + zsh.size())));
    }
    if (auto found = program_before(line, ": command not found")) return found;
    if (auto found = program_before(line, ": executable file not found in $PATH")) return found;
    if (const auto at = line.find("spawn "); at != std::string_view::npos) {
        if (auto found = program_before(line.substr(at + 6), " ENOENT")) return found;
    }
    if (exit_code == 127 && line.ends_with(": not found"))
        return program_before(line, ": not found");

    const bool is_env = line.starts_with("env: ") || line.starts_with("/usr/bin/env: ");
    const bool is_make = line.starts_with("make: ") || line.starts_with("make[");
    if (!is_env && !is_make) return std::nullopt;
    auto found = program_before(line, ": No such file or directory");
    // make says the same of a makefile, whose name mostly has a dot.
    if (is_make && found && found->program.find('.') != std::string::npos) return std::nullopt;
    return found;
}

// --- lines ------------------------------------------------------------------------------------

std::vector<std::string_view> last_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    lines.reserve(lines_max);
    while (!text.empty() && lines.size() < lines_max) {
        const std::size_t end = text.find_last_of("\r\n");
        const std::string_view line = end == std::string_view::npos ? text : text.substr(end + 1);
        text = text.substr(0, end == std::string_view::npos ? 0 : end);
        if (!trim(line).empty()) lines.push_back(trim(line));
    }
    return lines;
}

std::optional<Complaint> complaint_about_path(const Line& line) {
    if (line.says_any(read_only_phrases)) return Complaint::read_only;
    if (line.says_any(denied_phrases)) return Complaint::denied;
    if (line.says_any(missing_phrases)) return Complaint::missing;
    return std::nullopt;
}

// What needs no path to be understood.
std::optional<StderrComplaint> complaint_without_path(const Line& line, int exit_code) {
    if (line.says_any(socket_phrases)) return StderrComplaint{Complaint::no_socket};
    const bool is_unconnected = line.says_any(unconnected_phrases);
    if (line.says_any(refused_phrases) || (is_unconnected && line.says_any(loopback_names))) {
        return StderrComplaint{Complaint::refused_by_self};
    }
    if (line.says_any(network_phrases)) return StderrComplaint{Complaint::no_network};
    if (line.lowered.find("not a git repository") != std::string::npos) {
        return StderrComplaint{Complaint::no_repository};
    }
    return find_program(line.text, exit_code);
}

bool is_said_above(const std::vector<std::string_view>& lines, std::size_t at,
                   std::string_view phrase) {
    const std::size_t end = std::min(lines.size(), at + 1 + lookback_lines);
    for (std::size_t above = at + 1; above < end; ++above) {
        if (lines[above].find(phrase) != std::string_view::npos) return true;
    }
    return false;
}

// Python's last line says what, those above it say of what.
std::optional<StderrComplaint> complaint_of_python(const std::vector<std::string_view>& lines,
                                                   std::size_t at) {
    const std::string_view line = lines[at];
    if (line == "PermissionError: [Errno 1] Operation not permitted" &&
        is_said_above(lines, at, "socket")) {
        return StderrComplaint{Complaint::no_socket};
    }
    constexpr std::string_view missing = "FileNotFoundError: [Errno 2] No such file or directory: ";
    if (!line.starts_with(missing) || !is_said_above(lines, at, "subprocess.py")) {
        return std::nullopt;
    }
    return no_program(line.substr(missing.size()));
}

// A cause that names nothing stands below what it is the cause of.
std::vector<std::string> find_paths(const std::vector<std::string_view>& lines, std::size_t at) {
    std::vector<std::string> paths = paths_in(lines[at]);
    const bool is_bare = lines[at].find('/') == std::string_view::npos &&
                         lines[at].find(": ") == std::string_view::npos;
    const std::size_t end = is_bare ? std::min(lines.size(), at + 1 + lookback_lines) : at;
    for (std::size_t above = at + 1; paths.empty() && above < end; ++above) {
        paths = paths_in(lines[above]);
    }
    return paths;
}

}  // namespace

std::vector<StderrComplaint> read_complaints(std::string_view text, int exit_code) {
    const std::vector<std::string_view> lines = last_lines(text);
    std::vector<StderrComplaint> complaints;
    complaints.reserve(lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const Line line{lines[i], lower(lines[i])};
        auto found = complaint_without_path(line, exit_code);
        if (!found) found = complaint_of_python(lines, i);
        if (found) {
            complaints.push_back(*std::move(found));
        } else if (const auto kind = complaint_about_path(line)) {
            for (std::string& path : find_paths(lines, i)) {
                complaints.push_back({*kind, std::move(path), {}});
            }
        }
    }
    return complaints;
}

}  // namespace mechad
