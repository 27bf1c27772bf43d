# SPDX-License-Identifier: MIT
# Units of a user's service manager. They name the installed program, and the prefix is known only
# when CMake installs (cmake --install --prefix), so they are written then.

# Below the prefix where pkg-config has systemduserunitdir and systemduserpresetdir below /usr.
set(MECHAD_UNITDIR lib/systemd/user)
set(MECHAD_PRESETDIR lib/systemd/user-preset)

# Also what an absolute CMAKE_INSTALL_BINDIR or CMAKE_INSTALL_DOCDIR says.
install(CODE "
    set(source_dir \"${PROJECT_SOURCE_DIR}/systemd\")
    set(written_dir \"${PROJECT_BINARY_DIR}/systemd\")
    set(unit_dir \"${MECHAD_UNITDIR}\")
    set(bin_dir \"${CMAKE_INSTALL_BINDIR}\")
    set(doc_dir \"${CMAKE_INSTALL_DOCDIR}\")
")
install(CODE [[
    cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_PREFIX NORMALIZE OUTPUT_VARIABLE prefix)
    cmake_path(ABSOLUTE_PATH bin_dir BASE_DIRECTORY "${prefix}" NORMALIZE)
    cmake_path(ABSOLUTE_PATH doc_dir BASE_DIRECTORY "${prefix}" NORMALIZE)
    # "%" begins a specifier; the quotes keep a space in the prefix.
    string(REPLACE "%" "%%" MECHAD_PROGRAM "\"${bin_dir}/mechad\"")
    string(REPLACE "%" "%%" MECHAD_DOCDIR "${doc_dir}")
    string(REPLACE " " "%%20" MECHAD_DOCDIR "${MECHAD_DOCDIR}")
    foreach(unit mechad.socket mechad.service)
        configure_file("${source_dir}/${unit}" "${written_dir}/${unit}" @ONLY)
        file(INSTALL "${written_dir}/${unit}" DESTINATION "${prefix}/${unit_dir}")
    endforeach()
]])
install(FILES systemd/90-mechad.preset DESTINATION ${MECHAD_PRESETDIR})
install(FILES systemd/config.toml.example DESTINATION ${CMAKE_INSTALL_DOCDIR})
