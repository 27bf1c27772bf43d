# SPDX-License-Identifier: MIT
# Sourced by scripts/test: suites, as whom they run, and their sums. Needs common.sh and $work, a
# fresh directory that every user may enter.
# shellcheck shell=bash

: "${root:?}" "${build_root:?}" "${work:?}"
passed=0
failed=0
skipped=0
summary=()
suite_pid=
test_user=mechad-test
created_user=

# suite NAME KIND SECONDS COMMAND...: see suite.py. Adds to the sums; true when nothing failed.
suite() {
    local name=$1 kind=$2 seconds=$3 log start=$SECONDS counts line
    shift 3
    log=$work/log/${name//[^a-zA-Z0-9]/-}
    printf -- '--- %s\n' "$name"
    /usr/bin/python3 -B "$root/scripts/lib/suite.py" "$kind" "$seconds" "$log" "$@" \
        >"$work/counts" &
    suite_pid=$!
    wait "$suite_pid" || true
    suite_pid=
    read -r -a counts <"$work/counts" || counts=(0 1 0)
    if [[ ${CI:-} == true ]] && ((counts[2] > 0)); then
        grep -niE "skipped[: ]" "$log" || true
        ((counts[1] += counts[2])) || true
        counts[2]=0
    fi
    ((passed += counts[0], failed += counts[1], skipped += counts[2])) || true
    if [[ $kind == step || $kind == fuzz ]]; then
        line=ok
        ((counts[1] == 0)) || line=FAILED
    else
        line="${counts[0]} passed, ${counts[1]} failed, ${counts[2]} skipped"
    fi
    summary+=("$(printf '%-28s %-40s %4d s' "$name" "$line" "$((SECONDS - start))")")
    printf '    %s\n' "$line"
    ((counts[1] == 0)) || tail -n 80 "$log"
    ((counts[1] == 0))
}

# skip NAME WHY: a suite that this machine cannot run.
skip() {
    if [[ ${CI:-} == true ]]; then
        ((failed += 1))
    else
        ((skipped += 1))
    fi
    summary+=("$(printf '%-28s skipped: %s' "$1" "$2")")
}

# The suites of "an ordinary user" run as this user, or as one made for the time of this run.
make_test_user() {
    if ((EUID != 0)); then
        test_user=$(id -un)
    elif ! getent passwd "$test_user" >/dev/null; then
        created_user=$test_user
        useradd --create-home --shell /bin/bash "$test_user" || die "cannot add user $test_user"
    fi
}

remove_test_user() {
    [[ -z $created_user ]] || userdel --remove "$created_user" 2>/dev/null || true
    created_user=
}

# as_user NAME: sets `runner`, the start of a command line that runs as NAME with a clean
# environment and a TMPDIR of its own.
as_user() {
    local name=$1 home tmp=$work/tmp-$1 mode=0700
    # Tests as root start daemons of an ordinary user in theirs.
    [[ $name != root ]] || mode=0711
    home=$(getent passwd "$name" | cut -d: -f6)
    runner=(env -i "HOME=$home" "USER=$name" "LOGNAME=$name" "TMPDIR=$tmp" LC_ALL=C.UTF-8
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
        PYTHONDONTWRITEBYTECODE=1 "CI=${CI:-}" "MECHAD_SOURCE_DIR=$work/src")
    if [[ $name == "$(id -un)" ]]; then
        install -d -m "$mode" "$tmp"
    elif ((EUID == 0)); then
        install -d -m "$mode" -o "$name" -g "$(id -g "$name")" "$tmp"
        runner=(setpriv "--reuid=$name" "--regid=$(id -g "$name")" --init-groups "${runner[@]}")
    else
        sudo install -d -m "$mode" "$tmp"
        runner=(sudo "${runner[@]}")
    fi
}

# stage PRESET: installs a build beside copies of what its tests read. The clone may lie where
# the test user cannot go.
stage() {
    local to=$work/$1
    cmake --install "$build_root/$1" --prefix "$to" >/dev/null &&
        cp "$build_root/$1/bin/unit_tests" "$to/bin/" &&
        rm -rf "$work/src" && mkdir "$work/src" &&
        cp -R "$root/proto" "$root/tests" "$work/src/" &&
        cp "$root/scripts/lib/integration.py" "$work/" &&
        chmod -R a+rX "$to" "$work/src" "$work/integration.py"
}

# tests_as NAME PRESET: unit and integration tests of a staged build.
tests_as() {
    local name=$1 preset=$2 runner
    as_user "$name"
    runner+=("MECHAD_BIN_DIR=$work/$preset/bin")
    if [[ $preset == asan ]]; then
        # Sanitized code is slow, and reports may come from a daemon whose output nobody reads.
        runner+=(MECHAD_TEST_SLOWDOWN=4 "ASAN_OPTIONS=log_path=$work/tmp-$name/sanitizer"
            "UBSAN_OPTIONS=print_stacktrace=1:log_path=$work/tmp-$name/sanitizer")
    fi
    suite "unit, $preset, $name" doctest 300 "${runner[@]}" "$work/$preset/bin/unit_tests" || true
    suite "integration, $preset, $name" unittest 1200 "${runner[@]}" \
        /usr/bin/python3 "$work/integration.py" "$work/src/tests/integration" 4 || true
    if [[ $preset == asan ]]; then
        suite "sanitizer reports, $name" step 10 \
            "$root/scripts/lib/no_reports" "$work/tmp-$name/sanitizer" || true
    fi
}

# Ends what still runs and removes what this run made. For every way out.
clean_up() {
    trap '' INT TERM
    if [[ -n $suite_pid ]]; then
        kill -TERM "$suite_pid" 2>/dev/null
        wait "$suite_pid" 2>/dev/null
    fi
    rm -rf "$work" 2>/dev/null || sudo -n rm -rf "$work"
    remove_test_user
}

# Prints the summary; true when all is well.
report() {
    printf '\n'
    printf '%s\n' "${summary[@]}"
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    ((failed == 0 && passed > 0))
}
