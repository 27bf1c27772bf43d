// SPDX-License-Identifier: MIT
// Directories that a test shuts, and a test that is bound by it even as root.
#pragma once

#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace mechad {

// Gives the mode back in the end, so that the tree can be removed.
class Permissions {
public:
    Permissions(std::string path, mode_t mode) : path_(std::move(path)) {
        struct stat found {};
        if (::stat(path_.c_str(), &found) != 0 || ::chmod(path_.c_str(), mode) != 0) {
            throw std::runtime_error("cannot change " + path_);
        }
        mode_ = found.st_mode & 07777;
    }
    ~Permissions() { (void)::chmod(path_.c_str(), mode_); }
    Permissions(const Permissions&) = delete;
    Permissions& operator=(const Permissions&) = delete;

private:
    std::string path_;
    mode_t mode_ = 0;
};

// As root: this thread meets files as a user to whom none of them belongs, without the
// capabilities that look past permissions. As anybody else: nothing.
class BoundByPermissions {
public:
    BoundByPermissions() : is_root_(::geteuid() == 0) {
        constexpr uid_t nobody = 65534;
        if (is_root_) (void)::setfsuid(nobody);
    }
    ~BoundByPermissions() {
        if (is_root_) (void)::setfsuid(0);
    }
    BoundByPermissions(const BoundByPermissions&) = delete;
    BoundByPermissions& operator=(const BoundByPermissions&) = delete;

private:
    bool is_root_;
};

}  // namespace mechad
