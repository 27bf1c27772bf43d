// SPDX-License-Identifier: MIT
#include "daemon/config.hpp"

#include <algorithm>
#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <cctype>

#include "daemon/config_reader.hpp"
#include "daemon/os/printable.hpp"
#include "proto/messages.hpp"

namespace mechad {
namespace {

constexpr std::size_t socket_path_bytes_max = 107;  // unix(7): sun_path, without its NUL
constexpr std::int64_t day_ms = std::int64_t{24} * 60 * 60 * 1000;
constexpr std::int64_t timeout_ms_max = 31 * day_ms;
constexpr std::int64_t bytes_max = std::int64_t{1} << 53;  // exact in every JSON reader

// The key is understood and its value is right, but a limit that nothing keeps would be a lie.
constexpr std::string_view not_enforced =
    "is not enforced by this version, so it is refused rather than ignored; remove it";

const std::vector<std::string_view> sandbox_keys = {
    "kind",      "network", "writable", "readable", "env",        "image",
    "memory_mb", "cpus",    "pids",     "tmp_mb",   "shared_tmp", "submounts",
};
const std::vector<std::string_view> daemon_keys = {
    "socket",     "runs_max",   "idle_exit_s",      "kill_grace_ms", "output_limit_bytes",
    "timeout_ms", "workspaces", "network_override",
};

bool is_env_name(std::string_view name) {
    const auto is_allowed = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
           std::all_of(name.begin(), name.end(), is_allowed);
}

EnvEntry env_entry(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) return {text, std::nullopt};
    return {text.substr(0, equals), text.substr(equals + 1)};
}

std::string env_fault(const std::string& text) {
    if (!is_env_name(env_entry(text).name)) {
        return "must be \"NAME\" or \"NAME=value\", with a NAME of letters, digits and \"_\" that "
               "does not begin with a digit";
    }
    if (text.find('\0') != std::string::npos) return "must not hold a NUL character";
    if (text.size() >= exec_string_bytes_max) {
        return "must be below " + std::to_string(exec_string_bytes_max) + " bytes";
    }
    return {};
}

std::vector<EnvEntry> read_env(ConfigTable& table) {
    std::vector<EnvEntry> entries;
    const auto check = [&entries](const std::string& text) {
        std::string what = env_fault(text);
        if (!what.empty()) return what;
        EnvEntry entry = env_entry(text);
        const auto is_same = [&entry](const EnvEntry& other) { return other.name == entry.name; };
        if (std::any_of(entries.begin(), entries.end(), is_same)) {
            return "names " + entry.name + " again; each name may stand once";
        }
        entries.push_back(std::move(entry));
        return what;
    };
    table.strings("env", check);
    return entries;
}

BackendKind read_kind(ConfigTable& table) {
    const auto word = table.word("kind", {"none", "bwrap", "docker", "landlock"});
    if (!word) return BackendKind::none;
    const auto kind = find_kind(*word);
    if (kind) return *kind;
    table.refuse("kind", kind.error().message());
    return BackendKind::none;
}

// Types and ranges first: what is wrong in every version is told as such.
void refuse_unenforced_limits(ConfigTable& table) {
    const auto image = table.text("image");
    if (image && (image->empty() || os::printable(*image) != *image)) {
        table.refuse("image", "must name an image, such as \"debian:stable-slim\"");
    }
    table.integer("memory_mb", {1, std::int64_t{1} << 30});
    table.positive_number("cpus", 65536);
    table.integer("pids", {1, std::int64_t{1} << 22});  // the kernel's own limit of pid_max
    table.boolean("shared_tmp");
    for (const std::string_view key : {"image", "memory_mb", "cpus", "pids", "shared_tmp"}) {
        table.refuse(key, not_enforced);
    }
}

SandboxConfig read_sandbox(ConfigTable table) {
    SandboxConfig sandbox;
    sandbox.kind = read_kind(table);
    sandbox.network = table.boolean("network").value_or(sandbox.network);
    sandbox.writable = table.paths("writable");
    sandbox.readable = table.paths("readable");
    sandbox.env = read_env(table);
    if (const auto tmp_mb = table.integer("tmp_mb", {1, std::int64_t{1} << 20})) {
        sandbox.tmp_mb = static_cast<std::uint64_t>(*tmp_mb);
    }
    sandbox.submounts = table.boolean("submounts").value_or(sandbox.submounts);
    refuse_unenforced_limits(table);
    return sandbox;
}

std::optional<std::string> read_socket(ConfigTable& table) {
    auto socket = table.path("socket");
    if (socket && socket->size() > socket_path_bytes_max) {
        table.refuse("socket", "must be at most " + std::to_string(socket_path_bytes_max) +
                                   " bytes long, the limit of a socket's path");
    }
    return socket;
}

DaemonConfig read_daemon(ConfigTable table) {
    DaemonConfig daemon;
    daemon.socket = read_socket(table);
    if (const auto runs_max = table.integer("runs_max", {1, 65536})) {
        daemon.runs_max = static_cast<std::uint32_t>(*runs_max);
    }
    if (const auto idle_exit = table.integer("idle_exit_s", {0, timeout_ms_max / 1000})) {
        daemon.idle_exit = std::chrono::seconds(*idle_exit);
    }
    if (const auto grace = table.integer("kill_grace_ms", {0, 600'000})) {
        daemon.kill_grace = std::chrono::milliseconds(*grace);
    }
    if (const auto limit = table.integer("output_limit_bytes", {0, bytes_max})) {
        daemon.output_limit_bytes = static_cast<std::uint64_t>(*limit);
    }
    if (const auto timeout = table.integer("timeout_ms", {1, timeout_ms_max})) {
        daemon.timeout = std::chrono::milliseconds(*timeout);
    }
    daemon.workspaces = table.paths("workspaces");
    const auto rule = table.word("network_override", {"allow", "narrow"});
    if (rule == "narrow") daemon.network_override = NetworkOverride::narrow;
    return daemon;
}

// Null when absent; an error when `name` is something else than a table.
const toml::table* find_section(const toml::table& root, std::string_view name,
                                ConfigFault& fault) {
    const toml::node* node = root.get(name);
    if (node == nullptr || node->is_table()) return node == nullptr ? nullptr : node->as_table();
    fault.set(node->source().begin, name,
              std::string(name) + " must be a table: [" + std::string(name) + "]");
    return nullptr;
}

using SectionKeys = std::pair<const char*, const std::vector<std::string_view>*>;

// A key that stands in `table` and belongs into one of `sections`.
void check_misplaced(const toml::table& table, std::initializer_list<SectionKeys> sections,
                     ConfigFault& fault) {
    for (const auto& [key, node] : table) {
        const auto names_key = [&key = key](std::string_view name) { return name == key.str(); };
        for (const auto& [section, keys] : sections) {
            if (!std::any_of(keys->begin(), keys->end(), names_key)) continue;
            fault.set(key.source().begin, key.str(),
                      "key \"" + std::string(key.str()) + "\" must stand below " + section);
        }
    }
}

void check_sections(const toml::table& root, ConfigFault& fault) {
    if (const toml::node* server = root.get("server")) {
        fault.set(server->source().begin, "server",
                  "[server.NAME] tables are not available in this version; remove them");
    }
    const SectionKeys sandbox("[sandbox]", &sandbox_keys);
    const SectionKeys daemon("[daemon]", &daemon_keys);
    check_misplaced(root, {sandbox, daemon}, fault);
    if (const auto* table = root["sandbox"].as_table()) check_misplaced(*table, {daemon}, fault);
    if (const auto* table = root["daemon"].as_table()) check_misplaced(*table, {sandbox}, fault);
    const ConfigTable checked(&root, "", {"sandbox", "daemon"}, fault);
}

// Every value in one text: a string with its length before it, so that no two configurations
// share a text. Values passed through from the environment are not part of the policy.
class CanonicalText {
public:
    void add(std::string_view key, std::string_view value) {
        text_.append(key).append("=").append(std::to_string(value.size()));
        text_.append(":").append(value).append("\n");
    }
    void add(std::string_view key, std::uint64_t value) { add(key, std::to_string(value)); }
    void add(std::string_view key, const std::vector<std::string>& values) {
        add(key, values.size());
        for (const std::string& value : values) add(key, value);
    }
    const std::string& text() const { return text_; }

private:
    std::string text_;
};

std::string optional_text(const std::optional<std::uint64_t>& value) {
    return value ? std::to_string(*value) : "";
}

std::string digest_of(const SandboxConfig& sandbox, const DaemonConfig& daemon) {
    CanonicalText text;
    text.add("sandbox.kind", to_string(sandbox.kind));
    text.add("sandbox.network", std::uint64_t{sandbox.network});
    text.add("sandbox.writable", sandbox.writable);
    text.add("sandbox.readable", sandbox.readable);
    for (const EnvEntry& entry : sandbox.env) {
        text.add(entry.value ? "sandbox.env" : "sandbox.env (passed through)", entry.name);
        if (entry.value) text.add("value", *entry.value);
    }
    text.add("sandbox.tmp_mb", sandbox.tmp_mb);
    text.add("sandbox.submounts", std::uint64_t{sandbox.submounts});
    text.add("daemon.socket", daemon.socket.value_or(""));
    text.add("daemon.runs_max", std::uint64_t{daemon.runs_max});
    text.add("daemon.idle_exit_s", std::to_string(daemon.idle_exit.count()));
    text.add("daemon.kill_grace_ms", std::to_string(daemon.kill_grace.count()));
    text.add("daemon.output_limit_bytes", optional_text(daemon.output_limit_bytes));
    text.add("daemon.timeout_ms", daemon.timeout ? std::to_string(daemon.timeout->count()) : "");
    text.add("daemon.workspaces", daemon.workspaces);
    text.add("daemon.network_override", to_string(daemon.network_override));
    boost::uuids::name_generator_sha1 generate(boost::uuids::ns::oid());
    return boost::uuids::to_string(generate("mechad policy\n" + text.text()));
}

}  // namespace

std::string_view to_string(BackendKind kind) {
    switch (kind) {
        case BackendKind::none: return "none";
        case BackendKind::bwrap: return "bwrap";
        case BackendKind::docker: return "docker";
        case BackendKind::landlock: return "landlock";
    }
    return "";
}

Result<BackendKind> find_kind(std::string_view word) {
    if (word == "none") return BackendKind::none;
    if (word == "bwrap") return BackendKind::bwrap;
    const std::string shown = os::printable(word, 64);
    if (word != "docker" && word != "landlock") {
        return Error(ErrorKind::invalid_request,
                     "must be none, bwrap, docker or landlock, not " + shown);
    }
    return Error(ErrorKind::invalid_request,
                 "cannot be \"" + shown + "\" in this version, which has \"none\" and \"bwrap\"");
}

std::string_view to_string(NetworkOverride rule) {
    return rule == NetworkOverride::allow ? "allow" : "narrow";
}

Result<Config> parse_config(std::string_view text, std::string_view name) {
    ConfigFault fault(name);
    toml::table root;
    try {
        root = toml::parse(text, name);
    } catch (const toml::parse_error& error) {
        fault.set(error.source().begin, "",
                  "not valid TOML: " + os::printable(error.description()));
        return fault.error();
    }
    check_sections(root, fault);
    Config config;
    config.sandbox =
        read_sandbox({find_section(root, "sandbox", fault), "sandbox", sandbox_keys, fault});
    config.daemon =
        read_daemon({find_section(root, "daemon", fault), "daemon", daemon_keys, fault});
    if (fault) return fault.error();
    config.digest = digest_of(config.sandbox, config.daemon);
    return config;
}

}  // namespace mechad
