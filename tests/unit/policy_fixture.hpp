// SPDX-License-Identifier: MIT
// A home with the usual secrets, mechad's own files, and projects, in a fresh directory; and the
// policies over them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/policy.hpp"
#include "tests/unit/result_printer.hpp"
#include "tests/unit/temp_tree.hpp"

namespace mechad {

class PolicyFixture {
public:
    PolicyFixture() {
        home = tree.make_dir("home");
        project = tree.make_dir("home/proj");
        tree.make_dir("home/proj/sub");
        tree.make_file("home/.ssh/id_test", "SECRET");
        tree.make_file("home/.netrc", "SECRET");
        tree.make_file("home/.config/gh/hosts.yml", "SECRET");
        tree.make_dir("home/.config/editor");
        tree.make_file("vault/keys/ring", "SECRET");
        tree.make_link(tree / "vault/keys", "home/.gnupg");
        tree.make_dir("runtime/bus.d");
        std::filesystem::permissions(tree / "runtime", std::filesystem::perms(0700));
        tree.make_file("home/.config/mechad/config.toml");
        tree.make_dir("home/.cache/mechad/scratch");
        tree.make_file("install/bin/mechad");
        tree.make_dir("later");
        for (const char* const name :
             {"home/docker", "home/ssh", "home/x.ssh", "home/.ssh2", "home/.config/ghost",
              "home/gcloud", "install/share", "a b\n\xff", "-x,source=y", "home/.ssh/sub",
              "home/proj/.aws/cache", "other/.config/gcloud", "vault/keys/sub", "other/secret"}) {
            tree.make_dir(name);
        }
        tree.make_link(project, "link");
        tree.make_file("home/proj/file");
        tree.make_file("note", "x");
        own.paths = {tree / "home/.config/mechad", tree / "home/.cache/mechad",
                     tree / "install/bin/mechad", tree / "later/not/yet"};
        host.uid = ::getuid();
        host.user = "u";
        host.home = home;
        inherited = {{"HOME", home}, {"XDG_RUNTIME_DIR", tree / "runtime"}};
        config.sandbox.kind = BackendKind::bwrap;
    }

    Result<std::unique_ptr<Policy>> make_policy() const {
        return Policy::make(config, host, own, inherited);
    }

    static SpawnParams request_for(std::string workspace) {
        SpawnParams request;
        request.argv = {"true"};
        request.workspace = std::move(workspace);
        return request;
    }

    Result<Admission> admit(const SpawnParams& request) const {
        auto policy = make_policy();
        if (!policy) return policy.error();
        return (*policy)->admit(request);
    }

    // The whole of make and admit, in one line; the path that was admitted when all went well.
    std::string outcome_of(const SpawnParams& request) const {
        const auto admission = admit(request);
        return admission ? admission->box.workspace().path : admission.error().message();
    }

    TempTree tree;
    std::string home;
    std::string project;
    os::HostFacts host;
    OwnPlaces own;
    Environment inherited;
    Config config;
};

}  // namespace mechad
