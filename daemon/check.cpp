// SPDX-License-Identifier: MIT
#include "daemon/check.hpp"

namespace mechad {

namespace {

std::string_view word_for(ProbeVerdict verdict) {
    switch (verdict) {
        case ProbeVerdict::proved: return "proved  ";
        case ProbeVerdict::leak: return "LEAK    ";
        case ProbeVerdict::broken: return "broken  ";
    }
    return "unknown ";
}

}  // namespace

std::string describe_verdict(Engine& engine) {
    const auto& report = engine.preflight().report();
    const std::string backend(engine.run_services().backend->name);
    std::string text = "backend " + backend;
    if (!engine.host().bwrap_version.empty()) text += " (" + engine.host().bwrap_version + ")";
    text += "\n";
    for (const auto& probe : report.probes) {
        text += std::string(word_for(probe.verdict)) + probe.name;
        if (probe.verdict != ProbeVerdict::proved) text += ": " + probe.detail;
        text += "\n";
    }
    if (const auto refusal = engine.preflight().refusal()) {
        return text + refusal->message() + ". Nothing was executed.\n" + refusal->hint() + "\n";
    }
    if (!engine.run_services().backend->confined) {
        return text + "works, and confines nothing: commands run as this user\n";
    }
    for (const auto& claim : engine.preflight().proofs().closed) {
        text += "claim " + claim.key + ": " + claim.value + "\n";
    }
    return text + "passed\n";
}

}  // namespace mechad
