// SPDX-License-Identifier: MIT
#include "daemon/engine.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "daemon/log.hpp"
#include "daemon/os/seccomp.hpp"
#include "daemon/os/syscalls.hpp"

namespace mechad {

namespace {

// The daemon's own namespaces, to compare those of boxes with.
init_wire::Ready find_namespaces() {
    init_wire::Ready ready{};
    for (std::uint32_t i = 0; i < init_wire::ns_count; ++i) {
        const std::string path = std::string("/proc/self/ns/") + init_wire::namespace_names[i];
        struct stat found {};
        if (::stat(path.c_str(), &found) == 0) ready.namespaces[i] = found.st_ino;
    }
    return ready;
}

PreflightPlaces preflight_places(const Places& places) {
    return {.probe_binary = places.probe_binary,
            .ground = {.state = places.state,
                       .homes = places.homes.paths,
                       .has_unproved_home = places.homes.has_unusable},
            .own_socket = places.socket};
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::make(const boost::asio::any_io_executor& executor,
                                             const os::HostFacts& host,
                                             std::unique_ptr<Policy> policy, const Places& places) {
    auto init_binary = os::open_file(places.init_binary, O_PATH);
    if (!init_binary) return init_binary.error();
    const Backend* backend = find_backend(policy->config().sandbox.kind);
    if (backend->confined && !os::leave_session_keyring()) {
        log_warning("cannot leave the session keyring: keyrings are not available here");
    }
    auto filter = os::make_filter();
    if (!filter) return filter.error();
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(places.state).parent_path(), ignored);
    if (auto made = os::make_private_directory(places.state); !made) return made.error();
    std::unique_ptr<Engine> engine(new Engine(executor, host, std::move(policy), places,
                                              *std::move(init_binary), *std::move(filter)));
    if (backend->confined) {
        // Now it has time to look up where each socket lies.
        const auto looked = engine->bound_sockets_.find_below({});
        if (!looked) log_warning("no run can be told egress none: " + looked.error().message());
    }
    return engine;
}

Engine::Engine(const boost::asio::any_io_executor& executor, const os::HostFacts& host,
               std::unique_ptr<Policy> policy, const Places& places, os::UniqueFd init_binary,
               std::vector<sock_filter> filter)
    : host_(host),
      policy_(std::move(policy)),
      reaper_(executor),
      launcher_(executor, reaper_, std::move(init_binary)),
      run_services_{.executor = executor,
                    .backend = find_backend(policy_->config().sandbox.kind),
                    .host = &host_,
                    .policy = policy_.get(),
                    .launcher = &launcher_,
                    .reaper = &reaper_,
                    .bound_sockets = &bound_sockets_,
                    .filter = std::move(filter),
                    .command_file_limits = os::raise_file_limit(),
                    .own_namespaces = find_namespaces(),
                    .kill_grace = policy_->config().daemon.kill_grace},
      preflight_(run_services_, *policy_, host_, preflight_places(places)) {}

}  // namespace mechad
