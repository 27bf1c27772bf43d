// SPDX-License-Identifier: MIT
#include "daemon/claims.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "daemon/preflight/probe_run.hpp"
#include "tests/unit/result_printer.hpp"
#include "tests/unit/temp_tree.hpp"

using namespace mechad;

namespace {

constexpr Proofs all_proved{
    .home_hidden = true, .network_closed = true, .unix_sockets_denied = true};
constexpr BoxTraits closed_box{.confined = true, .network = false, .has_extra_binds = false};
constexpr BoxTraits open_box{.confined = true, .network = true, .has_extra_binds = false};

bool has_claim(const Claims& claims, std::string_view key, std::string_view value) {
    return std::any_of(claims.begin(), claims.end(), [&](const Claim& claim) {
        return claim.key == key && claim.value == value && !claim.proof.empty();
    });
}

bool has_key(const Claims& claims, std::string_view key) {
    return std::any_of(claims.begin(), claims.end(),
                       [&](const Claim& claim) { return claim.key == key; });
}

}  // namespace

TEST_CASE("claims: an unconfined box claims nothing and has the worst capabilities") {
    const BoxTraits box{.confined = false, .network = true, .has_extra_binds = false};

    CHECK(claims_for(box, all_proved).empty());
    CHECK(capabilities_for(box, all_proved) == Capabilities{});
}

TEST_CASE("claims: a closed box with every proof says egress none") {
    const auto said = capabilities_for(closed_box, all_proved);

    CHECK(said.egress == Egress::none);
    CHECK_FALSE(said.can_reach_network);
    CHECK_FALSE(said.reaches_beyond_workspace);
    CHECK(said.private_data);
    CHECK(said.destructive);
    CHECK_FALSE(said.untrusted_input);
    CHECK(has_claim(claims_for(closed_box, all_proved), "network", "closed"));
}

TEST_CASE("claims: without either of its proofs a closed box says chosen") {
    Proofs proofs = all_proved;
    SUBCASE("network") { proofs.network_closed = false; }
    SUBCASE("unix sockets") { proofs.unix_sockets_denied = false; }

    CHECK(capabilities_for(closed_box, proofs).egress == Egress::chosen);
    CHECK(capabilities_for(closed_box, proofs).can_reach_network);
}

TEST_CASE("claims: each goes with its proof") {
    Proofs proofs = all_proved;
    SUBCASE("home") {
        proofs.home_hidden = false;
        CHECK_FALSE(has_key(claims_for(closed_box, proofs), "home"));
        CHECK(has_key(claims_for(closed_box, proofs), "network"));
    }
    SUBCASE("network") {
        proofs.network_closed = false;
        CHECK_FALSE(has_key(claims_for(closed_box, proofs), "network"));
        CHECK(has_key(claims_for(closed_box, proofs), "home"));
    }
    SUBCASE("unix sockets") {
        proofs.unix_sockets_denied = false;
        CHECK_FALSE(has_key(claims_for(closed_box, proofs), "unix_sockets"));
    }
}

TEST_CASE("claims: an open box says chosen and open") {
    CHECK(capabilities_for(open_box, all_proved).egress == Egress::chosen);
    CHECK(has_claim(claims_for(open_box, all_proved), "network", "open"));
}

TEST_CASE("claims: an extra bind reaches beyond the workspace") {
    BoxTraits box = closed_box;
    box.has_extra_binds = true;

    CHECK(capabilities_for(box, all_proved).reaches_beyond_workspace);
}

namespace {

class JudgeFixture {
public:
    JudgeFixture() {
        tree.make_file("probe", "a program");
        auto planted = Scratch::plant(private_dir("state"), tree.make_dir("home"), tree / "probe");
        REQUIRE(planted);
        scratch = std::make_unique<Scratch>(std::move(*planted));
        targets.token = "token";
        targets.scratch = scratch.get();
        targets.tcp_port = "4242";
        answers["read:" + scratch->nonce_path()] = "ok " + scratch->nonce();
        answers["read:" + scratch->canary_path()] = "errno 2 ENOENT";
        answers["tcp:127.0.0.1:4242"] = "errno 111 ECONNREFUSED";
        answers[std::string("unix:") + Scratch::socket_name] = "errno 1 EPERM";
    }
    std::string private_dir(const std::string& name) {
        const std::string path = tree.make_dir(name);
        std::filesystem::permissions(path, std::filesystem::perms(0700));
        return path;
    }
    ProbeVerdict verdict(std::string_view probe, NetworkProbe network = NetworkProbe::closed,
                         bool tcp_heard = false, bool unix_heard = false) {
        for (const auto& report : judge(answers, targets, network, true, tcp_heard, unix_heard)) {
            if (report.name.starts_with(probe)) return report.verdict;
        }
        FAIL("no such probe");
        return ProbeVerdict::broken;
    }

    TempTree tree;
    std::unique_ptr<Scratch> scratch;
    ProbeTargets targets;
    ProbeAnswers answers;
};

}  // namespace

TEST_CASE_FIXTURE(JudgeFixture, "preflight: a box that works is proved, probe by probe") {
    for (const auto& report : judge(answers, targets, NetworkProbe::closed, true, false, false)) {
        CHECK_MESSAGE(report.verdict == ProbeVerdict::proved, report.name);
    }
}

TEST_CASE_FIXTURE(JudgeFixture, "preflight: a readable canary is a leak") {
    answers["read:" + scratch->canary_path()] = "ok " + scratch->canary();

    CHECK(verdict("home_canary") == ProbeVerdict::leak);
}

TEST_CASE_FIXTURE(JudgeFixture,
                  "preflight: a token at the listener is a leak, whatever the probe says") {
    CHECK(verdict("tcp_listener", NetworkProbe::closed, true) == ProbeVerdict::leak);
    CHECK(verdict("unix_listener", NetworkProbe::closed, false, true) == ProbeVerdict::leak);
}

TEST_CASE_FIXTURE(JudgeFixture, "preflight: a box that denies everything is broken, not closed") {
    answers["read:" + scratch->nonce_path()] = "errno 13 EACCES";

    CHECK(verdict("workspace_nonce") == ProbeVerdict::broken);
}

TEST_CASE_FIXTURE(JudgeFixture, "preflight: a wrong nonce is broken") {
    answers["read:" + scratch->nonce_path()] = "ok something else";

    CHECK(verdict("workspace_nonce") == ProbeVerdict::broken);
}

TEST_CASE_FIXTURE(JudgeFixture, "preflight: a missing answer proves nothing") {
    answers.clear();

    CHECK(verdict("home_canary") == ProbeVerdict::broken);
    CHECK(verdict("tcp_listener") == ProbeVerdict::broken);
    CHECK(verdict("unix_listener") == ProbeVerdict::broken);
}

TEST_CASE_FIXTURE(JudgeFixture, "preflight: an open network must reach the listener") {
    CHECK(verdict("tcp_listener", NetworkProbe::open, false) == ProbeVerdict::broken);
    answers["tcp:127.0.0.1:4242"] = "ok";
    CHECK(verdict("tcp_listener", NetworkProbe::open, true) == ProbeVerdict::proved);
}

TEST_CASE_FIXTURE(JudgeFixture,
                  "preflight: what it planted is gone with it, and after a killed one too") {
    const std::string canary = scratch->canary_path();
    const std::string workspace = scratch->workspace();
    REQUIRE(std::filesystem::exists(canary));

    SUBCASE("a living one is left alone") {
        Scratch::sweep(tree / "state", tree / "home");
        CHECK(std::filesystem::exists(canary));
    }
    SUBCASE("the end of it removes all") {
        scratch.reset();
        CHECK_FALSE(std::filesystem::exists(canary));
        CHECK_FALSE(std::filesystem::exists(workspace));
    }
    SUBCASE("a dead one is swept") {
        // As a killed daemon leaves it: the files are there and nobody holds the lock.
        const std::string left = private_dir("state/preflight-dead");
        tree.make_file("state/preflight-dead/lock");
        tree.make_file("home/.mechad-canary-dead");
        Scratch::sweep(tree / "state", tree / "home");
        CHECK_FALSE(std::filesystem::exists(left));
        CHECK_FALSE(std::filesystem::exists(tree / "home/.mechad-canary-dead"));
        CHECK(std::filesystem::exists(canary));
    }
}
