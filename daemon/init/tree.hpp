// SPDX-License-Identifier: MIT
// Ends everything below init. As pid 1 of a pid namespace one kill(-1) does; elsewhere init is the
// subreaper of what it started, and whatever loses its parent becomes a child of init.
#pragma once

namespace mechad {

// False when the kernel does not list a process's children: without the list a tree outside a pid
// namespace could not be emptied, so nothing may be started.
bool can_strike();

// One pass of SIGKILL; `pass` counts from 1. Only ECHILD from a wait proves that nothing is left:
// strike, reap, and strike again until then.
void strike(unsigned pass);

}  // namespace mechad
