// SPDX-License-Identifier: MIT
#include "daemon/init/command.hpp"

namespace mechad {

namespace {

using init_wire::Command;

// Both take memory only as far as they are used.
alignas(8) char body[init_wire::body_bytes_max];
char* pointers[init_wire::strings_count_max + 2];

// All arithmetic in 64 bits: the fields have 32.
bool is_well_formed(const Command& fixed, uint32_t bytes) {
    const uint64_t strings_end = sizeof fixed + uint64_t{fixed.strings_bytes};
    const uint64_t string_count = uint64_t{fixed.argc} + fixed.envc;
    if ((fixed.flags & ~uint32_t{init_wire::flags_known}) != 0 || fixed.argc == 0 ||
        string_count > init_wire::strings_count_max || strings_end > bytes) {
        return false;
    }
    const uint64_t filter_end =
        fixed.filter_offset + uint64_t{fixed.filter_count} * sizeof(sock_filter);
    return fixed.filter_count == 0 ||
           (fixed.filter_count <= BPF_MAXINSNS && fixed.filter_offset % 8 == 0 &&
            fixed.filter_offset >= strings_end && filter_end <= bytes);
}

// The strings must be exactly as many as the counts say, and fill their place.
bool split_strings(ReceivedCommand& command) {
    char* next = body + sizeof(Command);
    char* const end = next + command.fixed->strings_bytes;
    bool complete = true;
    const auto take = [&] {
        char* const string = next;
        void* const nul = memchr(next, '\0', static_cast<size_t>(end - next));
        complete = complete && nul;
        next = nul ? static_cast<char*>(nul) + 1 : end;
        return string;
    };
    command.workspace = take();
    command.cwd = take();
    command.argv = pointers;
    command.env = pointers + command.fixed->argc + 1;
    for (uint32_t i = 0; i < command.fixed->argc; ++i) command.argv[i] = take();
    for (uint32_t i = 0; i < command.fixed->envc; ++i) command.env[i] = take();
    return complete && next == end;
}

}  // namespace

bool receive_command(int control, uint32_t bytes, ReceivedCommand& command) {
    if (bytes < sizeof(Command) || bytes > sizeof body) return false;
    if (!receive_exactly(control, body, bytes)) return false;
    command.fixed = reinterpret_cast<const Command*>(body);
    if (!is_well_formed(*command.fixed, bytes)) return false;
    command.filter.len = static_cast<unsigned short>(command.fixed->filter_count);
    command.filter.filter = reinterpret_cast<sock_filter*>(body + command.fixed->filter_offset);
    return split_strings(command);
}

}  // namespace mechad
