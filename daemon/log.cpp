// SPDX-License-Identifier: MIT
#include "daemon/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <string>

namespace mechad {

namespace {

spdlog::logger& logger() {
    static const auto instance = [] {
        auto made = spdlog::stderr_color_mt("mechad");
        made->set_pattern("mechad: %^%l%$: %v");
        return made;
    }();
    return *instance;
}

std::string escaped(std::string_view line) {
    std::string text;
    for (const char byte : line) {
        const auto value = static_cast<unsigned char>(byte);
        if (value >= 0x20 && value < 0x7f) {
            text.push_back(byte);
        } else {
            text += fmt::format("\\x{:02x}", value);
        }
    }
    return text;
}

}  // namespace

void log_info(std::string_view line) { logger().info("{}", escaped(line)); }
void log_warning(std::string_view line) { logger().warn("{}", escaped(line)); }
void log_error(std::string_view line) { logger().error("{}", escaped(line)); }

}  // namespace mechad
