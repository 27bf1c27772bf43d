// SPDX-License-Identifier: MIT
#include "daemon/preflight/home_mounts.hpp"

#include <sys/sysmacros.h>

#include <filesystem>

#include "daemon/os/mount_table.hpp"

namespace mechad {

namespace {

std::string hex_escape(char byte) {
    constexpr std::string_view digits = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    return {'\\', 'x', digits[value >> 4], digits[value & 15]};
}

std::string octal_escape(char byte) {
    const auto value = static_cast<unsigned char>(byte);
    const auto digit = [value](unsigned shift) {
        return static_cast<char>('0' + ((value >> shift) & 7));
    };
    return hex_escape('\\') + digit(6) + digit(3) + digit(0);
}

}  // namespace

std::string as_reported(const os::Location& location) {
    std::string text = std::to_string(gnu_dev_major(location.device)) + ":" +
                       std::to_string(gnu_dev_minor(location.device)) + ":";
    for (const char byte : location.path) {
        if (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\\' || byte == '#') {
            text += octal_escape(byte);  // seq_path(9) writes these
        } else if (byte > ' ' && byte < 0x7f) {
            text += byte;
        } else {
            text += hex_escape(byte);
        }
    }
    return text;
}

Result<void> add_mounts(const std::vector<std::string>& homes, const std::string& workspace,
                        const std::vector<ExtraBind>& extra_binds, ProbeTargets& targets) {
    auto mounts = os::MountTable::make();
    if (!mounts) return mounts.error();
    if (const auto read = mounts->refresh(); !read) return read.error();
    const auto add = [&mounts](const std::string& path, std::vector<std::string>& to) {
        if (const auto location = mounts->locate(path)) to.push_back(as_reported(*location));
    };
    for (const auto& home : homes) {
        std::error_code error;
        const auto canonical = std::filesystem::canonical(home, error);
        if (!error) add(canonical, targets.home_mounts);
    }
    add(workspace, targets.planned_mounts);
    for (const auto& bind : extra_binds) add(bind.place.path, targets.planned_mounts);
    return {};
}

}  // namespace mechad
