// SPDX-License-Identifier: MIT
// Any text is a configuration or an error that says where; the same text always the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "daemon/config.hpp"

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto config = mechad::parse_config(text, "c");
    const auto again = mechad::parse_config(text, "c");
    require(config.has_value() == again.has_value());
    if (config) {
        require(config->digest == again->digest && config->digest.size() == 36);
        for (const auto* paths : {&config->sandbox.readable, &config->sandbox.writable}) {
            for (const std::string& path : *paths) require(path.starts_with('/'));
        }
        return 0;
    }
    const std::string message = config.error().message();
    require(message.starts_with("c:"));
    // Nothing of the text reaches a terminal as a control sequence.
    for (const char byte : message) {
        require(static_cast<unsigned char>(byte) >= 0x20 && byte != 0x7f);
    }
    return 0;
}
