// SPDX-License-Identifier: MIT
#include "daemon/config_reader.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "daemon/os/path_gate.hpp"
#include "daemon/os/printable.hpp"

namespace mechad {
namespace {

constexpr std::size_t shown_bytes_max = 200;  // of a value that a message repeats

std::string quoted(std::string_view text) { return os::quoted(text, shown_bytes_max); }

std::string join(const std::vector<std::string_view>& words, bool in_quotes) {
    std::string text;
    for (const std::string_view word : words) {
        if (!text.empty()) text.append(", ");
        text.append(in_quotes ? quoted(word) : std::string(word));
    }
    return text;
}

std::string_view type_name(const toml::node& node) {
    switch (node.type()) {
        case toml::node_type::none: return "nothing";
        case toml::node_type::table: return "a table";
        case toml::node_type::array: return "an array";
        case toml::node_type::string: return "a string";
        case toml::node_type::integer: return "an integer";
        case toml::node_type::floating_point: return "a floating-point number";
        case toml::node_type::boolean: return "a boolean";
        case toml::node_type::date:
        case toml::node_type::time:
        case toml::node_type::date_time: return "a date or time";
    }
    return "an unknown type";
}

// How many characters to insert, delete or replace, or neighbours to swap (the commonest slip).
std::size_t edit_distance(std::string_view from, std::string_view to) {
    std::vector<std::size_t> before(to.size() + 1);
    std::vector<std::size_t> row(to.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    std::vector<std::size_t> next(to.size() + 1);
    for (std::size_t i = 1; i <= from.size(); ++i) {
        next[0] = i;
        for (std::size_t j = 1; j <= to.size(); ++j) {
            const std::size_t replaced = row[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
            next[j] = std::min({row[j] + 1, next[j - 1] + 1, replaced});
            const bool swapped =
                i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
            if (swapped) next[j] = std::min(next[j], before[j - 2] + 1);
        }
        before.swap(row);
        row.swap(next);
    }
    return row.back();
}

std::string home_of_this_user() {
    struct passwd entry {};
    struct passwd* found = nullptr;
    std::array<char, 4096> buffer{};
    (void)::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
    return found != nullptr && found->pw_dir != nullptr ? found->pw_dir : "/home/USER";
}

std::string path_fault(const std::string& path) {
    if (path.empty()) return "must be an absolute path, not an empty string";
    if (path.find('\0') != std::string::npos) return "must not hold a NUL character";
    if (path == "~" || path.starts_with("~/")) {
        return "must be an absolute path; \"~\" is not expanded: write " +
               quoted(home_of_this_user() + path.substr(1));
    }
    if (path.front() != '/') return "must be an absolute path, not " + quoted(path);
    const std::string bounded = path + "/";
    for (const std::string_view part : {"//", "/./", "/../"}) {
        const bool is_trailing_slash = part == "//" && path.ends_with('/');
        const std::string& searched = is_trailing_slash ? path : bounded;
        if (searched.find(part) != std::string::npos) {
            return "must be a path without \"//\", \".\" and \"..\", not " + quoted(path);
        }
    }
    if (!os::clean_path(path)) return "must be a path that the kernel takes (below 4096 bytes)";
    return {};
}

}  // namespace

void ConfigFault::set(const toml::source_position& where, std::string_view key,
                      std::string_view what) {
    if (error_) return;
    std::string message = os::printable(file_name_);
    message.append(":").append(std::to_string(where.line));
    message.append(":").append(std::to_string(where.column)).append(": ").append(what);
    error_ = Error(ErrorKind::invalid_request, std::move(message), std::string(key));
}

std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known) {
    std::string_view nearest;
    std::size_t least = 3;  // more than two slips make another word
    if (word.size() > shown_bytes_max) return nearest;
    for (const std::string_view candidate : known) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < least && distance < candidate.size()) {
            nearest = candidate;
            least = distance;
        }
    }
    return nearest;
}

ConfigTable::ConfigTable(const toml::table* table, std::string_view name,
                         const std::vector<std::string_view>& keys, ConfigFault& fault)
    : table_(table), name_(name), fault_(fault) {
    check_keys(keys);
}

void ConfigTable::check_keys(const std::vector<std::string_view>& keys) {
    if (table_ == nullptr) return;
    for (const auto& [key, node] : *table_) {
        if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
        const std::string_view nearest = nearest_word(key.str(), keys);
        const std::string field = dotted(os::printable(key.str(), shown_bytes_max));
        std::string what = "unknown key " + quoted(key.str());
        if (!name_.empty()) what.append(" in [").append(name_).append("]");
        if (!nearest.empty()) what.append("; did you mean ").append(quoted(nearest)).append("?");
        what.append(" Allowed: ").append(join(keys, false));
        fault_.set(key.source().begin, field, what);
    }
}

const toml::node* ConfigTable::find(std::string_view key) const {
    return table_ == nullptr || fault_ ? nullptr : table_->get(key);
}

std::string ConfigTable::dotted(std::string_view key) const {
    return name_.empty() ? std::string(key) : name_ + "." + std::string(key);
}

void ConfigTable::refuse(std::string_view key, std::string_view what) {
    if (const toml::node* node = find(key)) {
        const std::string field = dotted(key);
        fault_.set(node->source().begin, field, field + " " + std::string(what));
    }
}

std::optional<bool> ConfigTable::boolean(std::string_view key) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    if (const auto* value = node->as_boolean()) return value->get();
    refuse(key, "must be true or false, not " + std::string(type_name(*node)));
    return std::nullopt;
}

std::optional<std::int64_t> ConfigTable::integer(std::string_view key, IntegerRange range) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    const std::string allowed = "must be an integer from " + std::to_string(range.smallest) +
                                " to " + std::to_string(range.largest) + ", not ";
    const auto* value = node->as_integer();
    if (value == nullptr) {
        refuse(key, allowed + std::string(type_name(*node)));
        return std::nullopt;
    }
    if (value->get() < range.smallest || value->get() > range.largest) {
        refuse(key, allowed + std::to_string(value->get()));
        return std::nullopt;
    }
    return value->get();
}

std::optional<double> ConfigTable::positive_number(std::string_view key, double largest) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    const std::optional<double> value = node->is_number() ? node->value<double>() : std::nullopt;
    if (value && std::isfinite(*value) && *value > 0 && *value <= largest) return value;
    refuse(key, "must be a number above 0 and at most " + std::to_string(std::lround(largest)));
    return std::nullopt;
}

std::optional<std::string> ConfigTable::string_of(const toml::node& node,
                                                  const std::string& field) {
    if (const auto* value = node.as_string()) return value->get();
    fault_.set(node.source().begin, field,
               field + " must be a string, not " + std::string(type_name(node)));
    return std::nullopt;
}

std::optional<std::string> ConfigTable::text(std::string_view key) {
    const toml::node* node = find(key);
    return node == nullptr ? std::nullopt : string_of(*node, dotted(key));
}

std::optional<std::string> ConfigTable::word(std::string_view key,
                                             std::initializer_list<std::string_view> allowed) {
    auto value = text(key);
    if (!value) return std::nullopt;
    const std::vector<std::string_view> words(allowed);
    if (std::find(words.begin(), words.end(), *value) != words.end()) return value;
    std::string what = "must be one of " + join(words, true) + ", not " + quoted(*value);
    const std::string_view nearest = nearest_word(*value, words);
    if (!nearest.empty()) what.append("; did you mean ").append(quoted(nearest)).append("?");
    refuse(key, what);
    return std::nullopt;
}

std::optional<std::string> ConfigTable::path(std::string_view key) {
    auto value = text(key);
    if (!value) return std::nullopt;
    const std::string what = path_fault(*value);
    if (what.empty()) return *os::clean_path(*value);
    refuse(key, what);
    return std::nullopt;
}

std::vector<std::string> ConfigTable::paths(std::string_view key) {
    std::vector<std::string> entries = strings(key, path_fault);
    for (std::string& entry : entries) entry = *os::clean_path(entry);
    return entries;
}

std::vector<std::string> ConfigTable::strings(std::string_view key, const Check& check) {
    const toml::node* node = find(key);
    if (node == nullptr) return {};
    const toml::array* array = node->as_array();
    if (array == nullptr) {
        refuse(key, "must be an array of strings, not " + std::string(type_name(*node)));
        return {};
    }
    std::vector<std::string> entries;
    for (const toml::node& element : *array) {
        const std::string field = dotted(key) + "[" + std::to_string(entries.size()) + "]";
        auto entry = string_of(element, field);
        if (!entry) return {};
        const std::string what = check(*entry);
        if (!what.empty()) {
            fault_.set(element.source().begin, field, std::string(field).append(" ").append(what));
            return {};
        }
        entries.push_back(*std::move(entry));
    }
    return entries;
}

}  // namespace mechad
