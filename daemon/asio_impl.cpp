// SPDX-License-Identifier: MIT
// The one place where Asio's own code is compiled; every other file sees declarations only
// (BOOST_ASIO_SEPARATE_COMPILATION).
#include <boost/asio/impl/src.hpp>
