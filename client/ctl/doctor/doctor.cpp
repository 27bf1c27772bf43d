// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iostream>

#include "client/ctl/commands.hpp"
#include "client/ctl/doctor/facts.hpp"
#include "client/ctl/doctor/judge.hpp"
#include "client/ctl/paper.hpp"
#include "proto/codec.hpp"
#include "proto/json_writer.hpp"

namespace mechad::ctl {

namespace {

constexpr std::size_t name_width = 12;

const char* sign_of(Mark mark) {
    switch (mark) {
        case Mark::good: return "\u2713";
        case Mark::warning: return "!";
        case Mark::bad: return "\u2717";
    }
    return "?";
}

Tone tone_of(Mark mark) {
    switch (mark) {
        case Mark::good: return Tone::good;
        case Mark::warning: return Tone::plain;
        case Mark::bad: return Tone::bad;
    }
    return Tone::bad;
}

const char* word_for(Mark mark) {
    switch (mark) {
        case Mark::good: return "ok";
        case Mark::warning: return "warning";
        case Mark::bad: return "bad";
    }
    return "unknown";
}

// Lines of `text`, each behind `margin` but the first.
std::string indented(const std::string& text, const std::string& margin) {
    std::string lines;
    for (std::size_t begin = 0; begin <= text.size();) {
        const auto end = std::min(text.find('\n', begin), text.size());
        if (begin != 0) lines += "\n" + margin;
        lines += shown(std::string_view(text).substr(begin, end - begin));
        begin = end + 1;
    }
    return lines;
}

void print_finding(const Finding& finding) {
    const std::string margin(name_width + 3, ' ');
    std::string name = finding.check;
    name.resize(std::max(name.size() + 1, name_width), ' ');
    std::cout << painted(sign_of(finding.mark), tone_of(finding.mark)) << " " << name << " "
              << indented(finding.cause, margin) << "\n";
    if (!finding.fix.empty()) {
        std::cout << margin << "fix: " << indented(finding.fix, margin + "     ") << "\n";
    }
}

void print_for_people(const std::vector<Finding>& findings, const std::vector<std::string>& kinds) {
    for (const auto& finding : findings) print_finding(finding);
    std::cout << "\n";
    if (kinds.empty()) {
        std::cout << "No kind that confines would work here.\n";
        return;
    }
    std::cout << "Would work here, in [sandbox]:";
    for (const auto& kind : kinds) std::cout << " kind = \"" << kind << "\"";
    std::cout << "\n";
}

void write_backend(JsonWriter& writer, const CheckRun& check) {
    writer.begin_object();
    writer.member("kind", check.kind);
    writer.key("status");
    if (!check.status) {
        writer.value(JsonValue());
    } else {
        const auto reply = parse_json(encode_result(std::int64_t{1}, *check.status));
        writer.value(*reply->find("result"));
    }
    writer.end_object();
}

std::string to_json(const DoctorFacts& facts, const std::vector<Finding>& findings, bool is_ok) {
    std::string text;
    JsonWriter writer(text);
    writer.begin_object();
    writer.member("version", std::string_view(MECHAD_VERSION));
    writer.member("ok", is_ok);
    writer.array("would_work", working_kinds(facts));
    writer.key("findings");
    writer.begin_array();
    for (const auto& finding : findings) {
        writer.begin_object();
        writer.member("check", finding.check);
        writer.member("mark", std::string_view(word_for(finding.mark)));
        writer.member("cause", finding.cause);
        writer.member("fix", finding.fix);
        writer.end_object();
    }
    writer.end_array();
    writer.key("backends");
    writer.begin_array();
    for (const auto& check : facts.kinds) write_backend(writer, check);
    writer.end_array();
    writer.end_object();
    return text;
}

}  // namespace

int doctor(const std::string& socket_path, bool as_json) {
    const DoctorFacts facts = gather_facts(socket_path);
    const auto findings = judge(facts);
    const bool is_ok = std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.mark == Mark::bad;
    });
    if (as_json) {
        std::cout << to_json(facts, findings, is_ok) << "\n";
    } else {
        print_for_people(findings, working_kinds(facts));
    }
    return is_ok ? 0 : 1;
}

}  // namespace mechad::ctl
