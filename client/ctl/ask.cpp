// SPDX-License-Identifier: MIT
#include "client/ctl/ask.hpp"

#include <mechad/error.hpp>

#include "client/control_call.hpp"

namespace mechad::ctl {

Result<JsonValue> ask(const std::string& socket_path, const decltype(Call::params)& params) {
    try {
        return client::ask(socket_path, params, client::never);
    } catch (const client::Error& error) {
        const auto kind = error_kind_from(error.kind_name()).value_or(ErrorKind::internal);
        return Error(kind, error.what(), error.field(), error.hint());
    }
}

}  // namespace mechad::ctl
