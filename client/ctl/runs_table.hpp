// SPDX-License-Identifier: MIT
// The runs of a list, for people.
#pragma once

#include <vector>

#include "proto/messages.hpp"

namespace mechad::ctl {

void print_runs(const std::vector<RunSummary>& runs);
void print_ended(const std::vector<EndedRun>& runs);

}  // namespace mechad::ctl
