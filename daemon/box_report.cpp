// SPDX-License-Identifier: MIT
#include "daemon/box_report.hpp"

#include "daemon/os/printable.hpp"

namespace mechad {

namespace {

constexpr std::size_t name_bytes_max = 200;

std::vector<const os::Place*> writable_places(const Box& box) {
    std::vector<const os::Place*> places{&box.workspace()};
    for (const ExtraBind& bind : box.extra_binds()) {
        if (bind.access == Access::read_write && bind.is_directory) places.push_back(&bind.place);
    }
    return places;
}

}  // namespace

BoxReport make_box_report(const Backend& backend, const Box& box, const Proofs& proofs,
                          const std::string& lowered_because) {
    const BoxTraits traits = traits_of(backend, box);
    BoxReport report{.backend = std::string(backend.name),
                     .confined = backend.confined,
                     .network = box.network(),
                     .claims = claims_for(traits, proofs),
                     .capabilities = capabilities_for(traits, proofs),
                     .notes = {}};
    if (!lowered_because.empty() && report.capabilities.egress == Egress::none) {
        report.capabilities.egress = Egress::chosen;
        report.notes.push_back(lowered_note(lowered_because));
    }
    return report;
}

std::string lowered_note(const std::string& because) {
    return "egress is chosen although the network is closed: " + because;
}

std::vector<BoundPath> binds_of(const Backend& backend, const Box& box) {
    std::vector<BoundPath> binds;
    if (backend.confined) {
        for (const ExtraBind& bind : box.extra_binds()) {
            binds.push_back({bind.place.path, bind.access});
        }
    }
    binds.push_back({box.workspace().path, Access::read_write});
    return binds;
}

BoxView view_of(const Backend& backend, const Box& box, const os::HostFacts& host,
                const Policy& policy) {
    BoxView view{
        .is_confined = backend.confined,
        .is_network_open = box.network(),
        .may_open_network = policy.config().daemon.network_override == NetworkOverride::allow,
        .home = host.home,
        .system = {},
        .private_directories = {"/tmp", "/var/tmp", "/dev/shm"},
        .binds = binds_of(backend, box),
        .find_fault = [&policy](const std::string& path) { return policy.find_entry_fault(path); }};
    view.system.reserve(host.system.size());
    for (const os::SystemEntry& entry : host.system) view.system.push_back(entry.path);
    return view;
}

std::optional<std::string> find_exposure(os::BoundSockets& sockets, const Box& box) {
    const auto found = sockets.find_below(writable_places(box));
    if (!found) {
        return "whether a program outside has bound a Unix socket below what this run writes "
               "cannot be told: " +
               found.error().message();
    }
    if (!*found) return std::nullopt;
    return "a program outside has bound a Unix socket below what this run writes, as " +
           os::printable(**found, name_bytes_max);
}

}  // namespace mechad
