// SPDX-License-Identifier: MIT
// Lets doctest show a Result: CHECK(result) then prints the error of one that has no value.
#pragma once

#include <doctest/doctest.h>

#include "proto/result.hpp"

namespace doctest {

template <class T>
struct StringMaker<mechad::Result<T>> {
    static String convert(const mechad::Result<T>& result) {
        return result ? String("a value") : String(result.error().message().c_str());
    }
};

}  // namespace doctest
