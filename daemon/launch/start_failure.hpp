// SPDX-License-Identifier: MIT
// Init's {step, errno} as the error a client reads. Pure.
#pragma once

#include "daemon/backend/backend.hpp"
#include "daemon/init/init_wire.hpp"
#include "daemon/policy.hpp"

namespace mechad {

std::string_view to_string(init_wire::Step step);

Error start_failure(const init_wire::Failed& failed, const Admission& admission,
                    const Backend& backend);

}  // namespace mechad
