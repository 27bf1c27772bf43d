// SPDX-License-Identifier: MIT
// bubblewrap: fresh user, pid, ipc, uts, cgroup and (closed) net namespaces around a root made
// of read-only system directories, private /tmp and the workspace. Needs 0.8.0 or later with
// --bind-fd (upstream 0.10, in Debian since 0.8.0-2+deb12u1).
#include "daemon/backend/backend.hpp"

namespace mechad {

namespace {

class Options {
public:
    template <class... Words>
    void add(Words&&... words) {
        (words_.emplace_back(std::forward<Words>(words)), ...);
    }
    std::vector<PlanWord> take() { return std::move(words_); }

private:
    std::vector<PlanWord> words_;
};

std::string_view bind_option(Access access) {
    return access == Access::read_only ? "--ro-bind-fd" : "--bind-fd";
}

void add_namespaces(Options& options, bool network) {
    // Each one by name and none of the *-try forms: bwrap must fail rather than leave one out.
    options.add("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
                "--unshare-cgroup");
    if (!network) options.add("--unshare-net");
    options.add("--die-with-parent", "--new-session", "--disable-userns", "--as-pid-1",
                "--cap-drop", "ALL", "--clearenv");
}

void add_system(Options& options, const os::HostFacts& host) {
    for (const auto& entry : host.system) {
        if (entry.link_target.empty()) {
            options.add("--ro-bind", entry.path, entry.path);
        } else {
            options.add("--symlink", entry.link_target, entry.path);
        }
    }
}

void add_kernel_and_scratch(Options& options, std::uint64_t tmp_bytes) {
    const std::string size = std::to_string(tmp_bytes);
    // /proc/sys: uid 0 in the box owns the files there and could write core_pattern.
    options.add("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys");
    options.add("--dev", "/dev", "--perms", "1777", "--size", size, "--tmpfs", "/dev/shm",
                "--remount-ro", "/dev");
    options.add("--perms", "1777", "--size", size, "--tmpfs", "/tmp");
    options.add("--perms", "1777", "--size", size, "--tmpfs", "/var/tmp");
}

void add_identity(Options& options) {
    options.add("--ro-bind-data", FdRef{FdRole::passwd_file}, "/etc/passwd");
    options.add("--ro-bind-data", FdRef{FdRole::group_file}, "/etc/group");
}

// passwd(5) has no quoting: a home with ':' or a line break cannot be written down.
std::string home_for_passwd(const std::string& workspace) {
    return workspace.find_first_of(":\n") == std::string::npos ? workspace : "/nonexistent";
}

std::string make_passwd(const Box& box, const os::HostFacts& host) {
    std::string text;
    if (host.uid != 0) text += "root:x:0:0:root:/root:/usr/sbin/nologin\n";
    text += host.user + ":x:" + std::to_string(host.uid) + ":" + std::to_string(host.gid) +
            "::" + home_for_passwd(box.workspace().path) + ":/bin/bash\n";
    text += "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
    return text;
}

std::string make_group(const os::HostFacts& host) {
    std::string text;
    if (host.gid != 0) text += "root:x:0:\n";
    text += host.user + ":x:" + std::to_string(host.gid) + ":\n";
    text += "nogroup:x:65534:\n";
    return text;
}

// Inside a writable entry a place is there already, and its mount point would be made in a tree
// that commands can change (see shown_ground.hpp).
bool is_shown_writable(const Box& box, const Directory& place) {
    for (const auto& bind : box.extra_binds()) {
        const bool is_itself = &bind.place == &place;
        if (bind.access == Access::read_write && !is_itself && os::lies_in(place, bind.place.id)) {
            return true;
        }
    }
    return false;
}

BoxPlan plan_bwrap(const Box& box, const os::HostFacts& host) {
    Options options;
    add_namespaces(options, box.network());

    // Order is meaning: a later mount covers an earlier one, so what is promised comes last.
    add_system(options, host);
    add_kernel_and_scratch(options, box.tmp_bytes());
    add_identity(options);
    // Only the one file, never a directory of /run: sockets live there.
    if (box.network() && !host.resolv_conf_file.empty()) {
        options.add("--ro-bind", host.resolv_conf_file, host.resolv_conf_file);
    }
    const auto& binds = box.extra_binds();
    for (std::size_t i = 0; i < binds.size(); ++i) {
        if (is_shown_writable(box, binds[i].place)) continue;
        options.add(std::string(bind_option(binds[i].access)), FdRef{FdRole::extra_bind, i},
                    binds[i].place.path);
    }
    if (!is_shown_writable(box, box.workspace())) {
        options.add("--bind-fd", FdRef{FdRole::workspace}, box.workspace().path);
    }
    options.add("--ro-bind-fd", FdRef{FdRole::init_binary}, "/.mechad-init");
    options.add("--remount-ro", "/");

    BoxPlan plan;
    plan.launcher = host.bwrap;
    plan.options = options.take();
    plan.init_path = "/.mechad-init";
    plan.passwd = make_passwd(box, host);
    plan.group = make_group(host);
    plan.own_namespaces = {init_wire::ns_user, init_wire::ns_pid, init_wire::ns_mnt,
                           init_wire::ns_ipc,  init_wire::ns_uts, init_wire::ns_cgroup};
    if (!box.network()) plan.own_namespaces.push_back(init_wire::ns_net);
    // No keyring of its own: the daemon left the user's session keyring once, at start, and the
    // filter denies every call that uses one. (A keyring for each run counts against the 200 of
    // an ordinary user.)
    plan.hardening = {
        .no_new_privs = true, .new_keyring = false, .core_zero = true, .filter = true};
    return plan;
}

}  // namespace

const Backend bwrap_backend{BackendKind::bwrap, "bwrap", true, plan_bwrap};

}  // namespace mechad
