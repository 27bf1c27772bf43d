// SPDX-License-Identifier: MIT
#include "client/ctl/paper.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "client/environment.hpp"
#include "daemon/os/printable.hpp"

namespace mechad::ctl {

namespace {

constexpr std::size_t name_width = 13;
constexpr std::size_t value_bytes_max = std::size_t{64} << 10;
constexpr std::size_t cell_bytes_max = 256;

bool is_colourful() {
    const std::string terminal = environment_value("TERM");
    return environment_value("NO_COLOR").empty() && !terminal.empty() && terminal != "dumb" &&
           ::isatty(STDOUT_FILENO) == 1;
}

// In characters; a terminal may show some of them wider.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
    }));
}

std::string padded(std::string_view text, std::size_t width) {
    const std::size_t used = width_of(text);
    return std::string(text) + std::string(used < width ? width - used : 0, ' ');
}

}  // namespace

std::string shown(std::string_view text) {
    std::string escaped = os::printable(text, value_bytes_max);
    for (std::size_t at = 0; (at = escaped.find("\\\\", at)) != std::string::npos; ++at) {
        escaped.erase(at, 1);
    }
    return escaped;
}

std::string painted(std::string text, Tone tone) {
    if (tone == Tone::plain || !is_colourful()) return text;
    return (tone == Tone::good ? "\x1b[32m" : "\x1b[1;31m") + std::move(text) + "\x1b[0m";
}

void print_fact(std::string_view name, std::string_view value, Tone tone) {
    std::string label = padded(name, name_width);
    for (bool is_more = true; is_more;) {
        const std::size_t end = value.find('\n');
        is_more = end != std::string_view::npos;
        std::cout << label << painted(shown(value.substr(0, end)), tone) << "\n";
        value.remove_prefix(is_more ? end + 1 : value.size());
        label.assign(name_width, ' ');
    }
}

void Table::add(std::vector<std::string> cells) {
    for (std::string& cell : cells) cell = os::printable(cell, cell_bytes_max);
    rows_.push_back(std::move(cells));
}

void Table::print() const {
    std::vector<std::size_t> widths(rows_.front().size(), 0);
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], width_of(row[i]));
        }
    }
    for (const auto& row : rows_) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += padded(row[i], widths[i]) + (i + 1 < row.size() ? "  " : "");
        }
        line.erase(line.find_last_not_of(' ') + 1);
        std::cout << line << "\n";
    }
}

std::string format_span(std::chrono::milliseconds span) {
    const auto two = [](std::int64_t number) {
        return (number < 10 ? "0" : "") + std::to_string(number);
    };
    const std::int64_t tenths = std::max<std::int64_t>(span.count(), 0) / 100;
    const std::int64_t seconds = tenths / 10;
    if (seconds < 60) return std::to_string(seconds) + "." + std::to_string(tenths % 10) + "s";
    const std::int64_t minutes = seconds / 60;
    if (minutes < 60) return std::to_string(minutes) + "m" + two(seconds % 60) + "s";
    const std::int64_t hours = minutes / 60;
    if (hours < 48) return std::to_string(hours) + "h" + two(minutes % 60) + "m";
    return std::to_string(hours / 24) + "d" + two(hours % 24) + "h";
}

}  // namespace mechad::ctl
