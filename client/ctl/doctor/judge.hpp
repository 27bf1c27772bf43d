// SPDX-License-Identifier: MIT
// What doctor says of what it saw. Pure: every machine can be played in a test.
#pragma once

#include <string>
#include <vector>

#include "client/ctl/doctor/facts.hpp"

namespace mechad::ctl {

enum class Mark {
    good,
    warning,  // something one may want to change; work goes on
    bad       // runs are refused, or could not be trusted
};

struct Finding {
    std::string check;
    Mark mark = Mark::good;
    std::string cause;  // what was seen
    std::string fix;    // lines to copy; empty when there is nothing to mend
};

std::vector<Finding> judge(const DoctorFacts& facts);

// The kinds that confine and whose preflight has passed here, the one to prefer first.
std::vector<std::string> working_kinds(const DoctorFacts& facts);

}  // namespace mechad::ctl
