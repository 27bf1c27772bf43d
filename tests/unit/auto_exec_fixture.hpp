// SPDX-License-Identifier: MIT
// A workspace that is looked at before and after a test changed it.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/auto_exec_files.hpp"
#include "daemon/os/syscalls.hpp"
#include "tests/unit/permissions.hpp"
#include "tests/unit/temp_tree.hpp"

namespace mechad {

class LookedAtWorkspace {
public:
    LookedAtWorkspace()
        : path_(tree_.make_dir("w")),
          fd_(*os::open_file(path_, O_PATH | O_DIRECTORY)),
          before_(AutoExecFiles::look(fd_)) {}

    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    void write(const std::string& name, std::string_view text, mode_t mode = 0644) const {
        tree_.make_file("w/" + name, text);
        REQUIRE(::chmod((*this / name).c_str(), mode) == 0);
    }
    void link(const std::string& target, const std::string& name) const {
        tree_.make_link(target, "w/" + name);
    }
    const TempTree& tree() const { return tree_; }

    void look() { before_ = look_now(); }
    std::vector<std::string> notes() const { return look_now().notes_since(before_); }
    // There is one note, and it says that of that name.
    bool says(const std::string& what, const std::string& name) const {
        const auto found = notes();
        CAPTURE(found.size());
        return found.size() == 1 &&
               found[0].starts_with(what + " while the run lasted: \"" + name + "\", ");
    }

    // There is one note, and it says that what happened to that cannot be told, for that reason.
    bool doubts(const std::string& name, const std::string& why) const {
        const auto found = notes();
        CAPTURE(found.size());
        return found.size() == 1 &&
               found[0].starts_with("what was changed in \"" + name + "\", ") &&
               found[0].find("cannot be told: " + why) != std::string::npos;
    }

private:
    AutoExecFiles look_now() const {
        const BoundByPermissions bound;
        return AutoExecFiles::look(fd_);
    }

    TempTree tree_;
    std::string path_;
    os::UniqueFd fd_;
    AutoExecFiles before_;
};

}  // namespace mechad
