// SPDX-License-Identifier: MIT
#pragma once

// What libmechad exports; everything else in it stays inside.
#define MECHAD_CLIENT_EXPORT __attribute__((visibility("default")))
