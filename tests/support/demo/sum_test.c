// SPDX-License-Identifier: MIT
// Takes a second between its two lines, so that one sees output arrive while it runs.
#include "sum.h"

#include <stdio.h>
#include <unistd.h>

int main(void) {
    const long values[] = {20, 19, 3};
    printf("running 2 tests\n");
    fflush(stdout);
    sleep(1);
    if (sum(values, 3) != 42 || sum(values, 0) != 0) {
        printf("2 tests, FAILED\n");
        return 1;
    }
    printf("2 tests, all passed\n");
    return 0;
}
