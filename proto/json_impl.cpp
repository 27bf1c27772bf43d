// SPDX-License-Identifier: MIT
// The one place where Boost.JSON's own code is compiled: nothing of mechad needs its library when
// it runs, so that libmechad can go into any program.
#include <boost/json/src.hpp>
