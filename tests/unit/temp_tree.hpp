// SPDX-License-Identifier: MIT
// A fresh directory for one test, removed with everything in it.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "daemon/os/host_facts.hpp"

namespace mechad {

class TempTree {
public:
    // Below /tmp, on a path without links; open to other users, as some tests change theirs.
    TempTree() {
        std::string name = std::filesystem::canonical("/tmp").string() + "/mechad-test-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
        path_ = name;
        std::filesystem::permissions(path_, std::filesystem::perms(0755));
    }
    ~TempTree() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempTree(const TempTree&) = delete;
    TempTree& operator=(const TempTree&) = delete;

    const std::string& path() const { return path_; }
    std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

    std::string make_dir(std::string_view name) const {
        std::filesystem::create_directories(*this / name);
        return *this / name;
    }
    std::string make_file(std::string_view name, std::string_view contents = {}) const {
        const std::string file = *this / name;
        std::filesystem::create_directories(std::filesystem::path(file).parent_path());
        std::ofstream(file, std::ios::binary) << contents;
        return file;
    }
    std::string make_link(std::string_view target, std::string_view name) const {
        const std::string link = *this / name;
        std::filesystem::create_directories(std::filesystem::path(link).parent_path());
        std::filesystem::create_symlink(target, link);
        return link;
    }

private:
    std::string path_;
};

inline os::FileId identity_of(const std::string& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) throw std::runtime_error("cannot stat " + path);
    return {found.st_dev, found.st_ino};
}

}  // namespace mechad
