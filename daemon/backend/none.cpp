// SPDX-License-Identifier: MIT
// No confinement: the command runs as the user, under mechad-init only for exact endings and the
// emptying of its tree. Nothing that would change what the user may do is applied.
#include "daemon/backend/backend.hpp"

namespace mechad {

namespace {

BoxPlan plan_none(const Box&, const os::HostFacts&) {
    BoxPlan plan;
    plan.maker = Maker::init_itself;
    return plan;
}

}  // namespace

const Backend none_backend{BackendKind::none, "none", false, plan_none};

}  // namespace mechad
