# SPDX-License-Identifier: MIT
# libmechad, the client library: mechad_client_code, the objects of it that mechad-ctl and the tests
# take in, mechad_client, the shared library, and how a program outside of this tree finds that.

include(CMakePackageConfigHelpers)
include(cmake/client_error_kinds.cmake)

set(client_generated ${PROJECT_BINARY_DIR}/client/include)
mechad_generate_client_error_kinds(
    ${PROJECT_SOURCE_DIR}/proto/errors.json ${client_generated}/mechad/error_kind.hpp)

add_library(mechad_client_code STATIC
    client/channel.cpp
    client/client.cpp
    client/control_call.cpp
    client/convert.cpp
    client/error.cpp
    client/failure.cpp
    client/run.cpp
    client/run_channel.cpp
    client/socket.cpp
)
target_include_directories(mechad_client_code PUBLIC
    ${PROJECT_SOURCE_DIR}/client/include ${client_generated})
target_link_libraries(mechad_client_code PUBLIC mechad_os mechad_proto)
set_target_properties(mechad_client_code PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

# Nothing of what is inside shows: the code of proto/ and of Boost is kept from the dynamic symbols
# by the version script, and from whoever links by being PRIVATE.
set(client_symbols ${PROJECT_SOURCE_DIR}/client/symbols.map)
add_library(mechad_client SHARED $<TARGET_OBJECTS:mechad_client_code>)
set_target_properties(mechad_client PROPERTIES
    OUTPUT_NAME mechad EXPORT_NAME client
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINKER_LANGUAGE CXX LINK_DEPENDS ${client_symbols})
target_link_libraries(mechad_client PRIVATE mechad_os mechad_proto)
target_link_options(mechad_client PRIVATE
    -Wl,--version-script=${client_symbols} -Wl,--as-needed -Wl,--gc-sections)
target_compile_features(mechad_client INTERFACE cxx_std_20)
target_include_directories(mechad_client INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/client/include>
    $<BUILD_INTERFACE:${client_generated}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# --- installation; both packages follow the prefix when it is moved ---

set(client_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mechad)
install(TARGETS mechad_client EXPORT mechadTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY client/include/mechad ${client_generated}/mechad
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT mechadTargets NAMESPACE mechad:: DESTINATION ${client_package_dir})
configure_package_config_file(
    cmake/mechadConfig.cmake.in ${PROJECT_BINARY_DIR}/client/mechadConfig.cmake
    INSTALL_DESTINATION ${client_package_dir})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/client/mechadConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/client/mechadConfig.cmake
    ${PROJECT_BINARY_DIR}/client/mechadConfigVersion.cmake DESTINATION ${client_package_dir})

cmake_path(APPEND CMAKE_INSTALL_LIBDIR pkgconfig OUTPUT_VARIABLE pkgconfig_dir)
file(RELATIVE_PATH client_prefix_from_pc /${pkgconfig_dir} /)
string(REGEX REPLACE "/$" "" client_prefix_from_pc "${client_prefix_from_pc}")
configure_file(cmake/mechad.pc.in ${PROJECT_BINARY_DIR}/client/mechad.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/client/mechad.pc DESTINATION ${pkgconfig_dir})
