// SPDX-License-Identifier: MIT
// Turns a BoxPlan into a process: fills in descriptors, starts the launcher (or init itself) with
// an empty environment, and hands back the LiveBox. Call it from the event loop's thread only:
// bwrap's death signal belongs to the thread that started it (prctl(2), PR_SET_PDEATHSIG).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>

#include "daemon/launch/box_plan.hpp"
#include "daemon/launch/live_box.hpp"
#include "daemon/launch/reaper.hpp"
#include "daemon/policy.hpp"

namespace mechad {

class Launcher {
public:
    // `init_binary` is mechad-init, opened O_PATH once: replacing the file later changes nothing.
    Launcher(const boost::asio::any_io_executor& executor, Reaper& reaper,
             os::UniqueFd init_binary);

    // Errors are of kind sandbox_setup_failed with the failing call as step.
    Result<std::unique_ptr<LiveBox>> launch(const Box& box, const BoxPlan& plan,
                                            std::function<void()> on_news);

private:
    boost::asio::any_io_executor executor_;
    Reaper& reaper_;
    os::UniqueFd init_binary_;
    os::UniqueFd null_;
};

}  // namespace mechad
