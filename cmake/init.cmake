# SPDX-License-Identifier: MIT
# mechad-init and mechad-probe: static, on musl, with flags of their own. The compiler, sanitizers
# and warnings of the rest of the tree do not reach them.
#
# mechad_add_static_program(NAME SOURCE...) builds NAME into MECHAD_LIBEXEC_OUTPUT_DIRECTORY, as a
# target of that name whose property OBJECTS lists its object files, and installs it.

find_program(MUSL_GCC musl-gcc REQUIRED DOC "C compiler of musl-tools")

# The headers of musl come first, then those of the kernel, which it does not have.
set(static_compile_flags
    -x c++ -std=c++20 -fno-exceptions -fno-rtti -Os -I${PROJECT_SOURCE_DIR}
    -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -idirafter /usr/include
    -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wduplicated-cond
    -Wlogical-op -Wuseless-cast -Werror
    -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables
    -fstack-protector-strong -fstack-clash-protection -fcf-protection)
set(static_link_flags -static -s -Wl,--gc-sections,-z,relro,-z,now,-z,noexecstack)

function(mechad_add_static_program name)
    set(objects "")
    foreach(source ${ARGN})
        cmake_path(GET source STEM stem)
        set(object ${PROJECT_BINARY_DIR}/static/${name}/${stem}.o)
        add_custom_command(
            OUTPUT ${object}
            COMMAND ${MUSL_GCC} ${static_compile_flags} -MD -MF ${object}.d -MT ${object}
                    -c ${PROJECT_SOURCE_DIR}/${source} -o ${object}
            DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/init.cmake
            DEPFILE ${object}.d
            COMMENT "Building ${name}: ${source}"
            VERBATIM)
        list(APPEND objects ${object})
    endforeach()
    set(program ${MECHAD_LIBEXEC_OUTPUT_DIRECTORY}/${name})
    add_custom_command(
        OUTPUT ${program}
        COMMAND ${MUSL_GCC} ${static_link_flags} ${objects} -o ${program}
        DEPENDS ${objects}
        COMMENT "Linking ${name}"
        VERBATIM)
    add_custom_target(${name} ALL DEPENDS ${program})
    set_target_properties(${name} PROPERTIES OBJECTS "${objects}")
    install(PROGRAMS ${program} DESTINATION ${MECHAD_LIBEXECDIR})
endfunction()

file(MAKE_DIRECTORY ${MECHAD_LIBEXEC_OUTPUT_DIRECTORY}
    ${PROJECT_BINARY_DIR}/static/mechad-init ${PROJECT_BINARY_DIR}/static/mechad-probe)

mechad_add_static_program(mechad-init
    daemon/init/mechad_init.cpp
    daemon/init/child.cpp
    daemon/init/command.cpp
    daemon/init/tree.cpp
    daemon/init/wire_io.cpp
)
mechad_add_static_program(mechad-probe
    daemon/init/mechad_probe.cpp
    daemon/init/probe_files.cpp
    daemon/init/probe_ipc.cpp
    daemon/init/probe_processes.cpp
    daemon/init/probe_sockets.cpp
)

# What init may call is a list that a reviewer reads: any other symbol of libc ends the build.
get_target_property(init_objects mechad-init OBJECTS)
add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/static/init-symbols.checked
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-init-symbols ${init_objects}
    COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/static/init-symbols.checked
    DEPENDS ${init_objects} ${PROJECT_SOURCE_DIR}/scripts/check-init-symbols
            ${PROJECT_SOURCE_DIR}/daemon/init/allowed_symbols.txt
    COMMENT "Checking the symbols of mechad-init"
    VERBATIM)
add_custom_target(init-symbols ALL DEPENDS ${PROJECT_BINARY_DIR}/static/init-symbols.checked)
