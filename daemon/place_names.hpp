// SPDX-License-Identifier: MIT
// Names of places that are not for commands. Text only: whether any of them exists here is known to
// forbidden_places.hpp.
#pragma once

#include <array>
#include <optional>
#include <string>

namespace mechad {

// Directories and files in which programs keep keys, tokens and sessions, relative to a home.
inline constexpr std::array credential_names = {
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".oci",
    ".terraform.d",
    ".netrc",
    ".git-credentials",
    ".pgpass",
    ".pypirc",
    ".password-store",
    ".vault-token",
    ".mozilla",
    ".thunderbird",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/chromium",
    ".config/google-chrome",
    ".config/BraveSoftware",
    ".local/share/keyrings",
};

inline constexpr std::array kernel_trees = {"/proc", "/sys", "/dev", "/run", "/var/run", "/boot"};

inline constexpr std::array shared_directories = {
    "/usr", "/etc",  "/opt", "/bin", "/sbin", "/lib",     "/lib32", "/lib64", "/libx32",
    "/var", "/home", "/srv", "/tmp", "/mnt",  "/var/tmp", "/media", "/root",
};

// Why a path is refused anywhere, as a clause: it leads into a credential directory, by its name.
std::optional<std::string> find_credential_name(const std::string& path);

}  // namespace mechad
