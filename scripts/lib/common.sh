# SPDX-License-Identifier: MIT
# Sourced by the scripts beside this folder: where things are, and how to build and clean up.
# shellcheck shell=bash

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# Build trees lie here, one per preset; set it when the clone is not writable.
build_root=${MECHAD_BUILD_ROOT:-$root/build}
export LC_ALL=C.UTF-8
umask go-w  # mechad refuses a configuration that others can write

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# build PRESET [TARGET...]: configures and builds; the tree is $build_root/PRESET.
build() {
    local preset=$1
    shift
    local targets=()
    (($# == 0)) || targets=(--target "$@")
    (cd "$root" && cmake --preset "$preset" -B "$build_root/$preset" >/dev/null) &&
        cmake --build "$build_root/$preset" --parallel "$(nproc)" "${targets[@]}"
}

# What a user of mechad needs built; everything else is for its tests.
programs=(mechad mechad-ctl mechad-init mechad-probe mechad_client)

# install_release PREFIX: builds what users get and installs it.
install_release() {
    build release "${programs[@]}" && cmake --install "$build_root/release" --prefix "$1" >/dev/null
}

# wait_gone PID SECONDS: true once the process is gone or a zombie. For own children only: their
# number cannot be taken over by another process before this shell has waited for them.
wait_gone() {
    local pid=$1 deadline=$((SECONDS + $2)) state
    while ((SECONDS <= deadline)); do
        # The state follows the name, which ends at the last parenthesis.
        state=$(cat "/proc/$pid/stat" 2>/dev/null) || return 0
        [[ ${state##*) } != Z* ]] || return 0
        sleep 0.05
    done
    return 1
}

# stop PID: ends a background process of this shell; TERM, five seconds, KILL.
stop() {
    local pid=$1
    kill -TERM "$pid" 2>/dev/null || true
    if ! wait_gone "$pid" 5; then
        kill -KILL "$pid" 2>/dev/null || true
    fi
    wait "$pid" 2>/dev/null || true
}

# wait_for SECONDS COMMAND...: true once COMMAND succeeds.
wait_for() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.05
    done
}

home_of_user() {
    getent passwd "$(id -u)" | cut -d: -f6
}
