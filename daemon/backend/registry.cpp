// SPDX-License-Identifier: MIT
#include "daemon/backend/backend.hpp"

namespace mechad {

const Backend* find_backend(BackendKind kind) {
    for (const Backend* backend : {&none_backend, &bwrap_backend}) {
        if (backend->kind == kind) return backend;
    }
    return nullptr;
}

}  // namespace mechad
