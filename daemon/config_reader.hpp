// SPDX-License-Identifier: MIT
// Reads one table of the configuration, key by key, and explains the first thing that is wrong
// with it. For config.cpp only: these two know toml++, nothing else does.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

#include "proto/result.hpp"

namespace mechad {

// Where the text came from and what went wrong first. After an error the readers do nothing more.
class ConfigFault {
public:
    explicit ConfigFault(std::string_view file_name) : file_name_(file_name) {}

    void set(const toml::source_position& where, std::string_view key, std::string_view what);
    explicit operator bool() const { return error_.has_value(); }
    const Error& error() const { return *error_; }

private:
    std::string_view file_name_;
    std::optional<Error> error_;
};

// The known word nearest to `word`; empty when none is near.
std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known);

struct IntegerRange {
    std::int64_t smallest;
    std::int64_t largest;
};

class ConfigTable {
public:
    // Every key of `table` must be one of `keys`. A null table is an empty one.
    ConfigTable(const toml::table* table, std::string_view name,
                const std::vector<std::string_view>& keys, ConfigFault& fault);

    // Each answers nullopt when the key is absent or wrong; ConfigFault tells which.
    std::optional<bool> boolean(std::string_view key);
    std::optional<std::int64_t> integer(std::string_view key, IntegerRange range);
    // Above 0 and at most `largest`; NaN and infinity are neither.
    std::optional<double> positive_number(std::string_view key, double largest);
    std::optional<std::string> word(std::string_view key,
                                    std::initializer_list<std::string_view> allowed);
    std::optional<std::string> text(std::string_view key);
    // An absolute path as it is to be used: no "~", "." or "..", no "//".
    std::optional<std::string> path(std::string_view key);
    std::vector<std::string> paths(std::string_view key);

    // Each string of the array `key`; `check` answers what is wrong with one, or nothing.
    using Check = std::function<std::string(const std::string& entry)>;
    std::vector<std::string> strings(std::string_view key, const Check& check);

    // Refuses the key where it stands.
    void refuse(std::string_view key, std::string_view what);

private:
    const toml::node* find(std::string_view key) const;
    std::string dotted(std::string_view key) const;
    void check_keys(const std::vector<std::string_view>& keys);
    std::optional<std::string> string_of(const toml::node& node, const std::string& field);

    const toml::table* table_;
    std::string name_;
    ConfigFault& fault_;
};

}  // namespace mechad
