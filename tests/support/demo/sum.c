// SPDX-License-Identifier: MIT
#include "sum.h"

long sum(const long* values, size_t count) {
    long total = 0;
    for (size_t i = 0; i < count; ++i) total += values[i];
    return total;
}
