// SPDX-License-Identifier: MIT
// What mechad-probe says: text in a fixed buffer, written once at the end.
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

namespace mechad {

// The whole report; what does not fit is lost, and the caller misses its line.
class Report {
public:
    void add_char(char byte) {
        if (length_ < sizeof text_) text_[length_++] = byte;
    }
    void add(const char* text) {
        while (*text) add_char(*text++);
    }
    void add_number(unsigned long number) {
        char digits[24];
        (void)snprintf(digits, sizeof digits, "%lu", number);
        add(digits);
    }
    void add_escaped(const char* bytes, size_t count) {
        static constexpr char hex[] = "0123456789abcdef";
        for (size_t i = 0; i < count; ++i) {
            const unsigned char byte = static_cast<unsigned char>(bytes[i]);
            if (byte > ' ' && byte < 0x7f && byte != '\\') {
                add_char(bytes[i]);
            } else {
                add("\\x");
                add_char(hex[byte >> 4]);
                add_char(hex[byte & 15]);
            }
        }
    }
    size_t mark() const { return length_; }
    void rewind(size_t mark) { length_ = mark; }
    bool write_out() const {
        return write(STDOUT_FILENO, text_, length_) == static_cast<ssize_t>(length_);
    }

private:
    char text_[1 << 18];
    size_t length_ = 0;
};

}  // namespace mechad
