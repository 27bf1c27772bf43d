# SPDX-License-Identifier: MIT
# How every target of this tree is compiled: mechad_warnings and mechad_settings, two interface
# targets. mechad-init and mechad-probe stay apart: static, no library, never sanitized.

option(MECHAD_HARDENING "Hardening flags of a release" OFF)
option(MECHAD_FUZZ "Build the fuzz targets (clang only)" OFF)
set(MECHAD_SANITIZE "" CACHE STRING "Value of -fsanitize=, such as address,undefined")

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
# No -DNDEBUG in any of them: a broken invariant ends the daemon in a release too.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(mechad_warnings INTERFACE)
target_compile_options(mechad_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
    -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(mechad_warnings INTERFACE
        -Wduplicated-cond -Wlogical-op -Wuseless-cast)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
        # False alarms when optimizing: -Wrestrict on "literal" + std::string (GCC bug 105651),
        # -Wmismatched-new-delete on coroutine frames, which Asio allocates and frees itself.
        target_compile_options(mechad_warnings INTERFACE
            -Wno-restrict -Wno-mismatched-new-delete)
    endif()
endif()

add_library(mechad_settings INTERFACE)
target_compile_features(mechad_settings INTERFACE cxx_std_20)
target_include_directories(mechad_settings INTERFACE
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_definitions(mechad_settings INTERFACE
    $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>
    BOOST_ASIO_SEPARATE_COMPILATION
    BOOST_ASIO_NO_DEPRECATED)
target_link_libraries(mechad_settings INTERFACE mechad_warnings)

if(MECHAD_HARDENING)
    target_compile_options(mechad_settings INTERFACE
        -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection
        -fcf-protection)
    target_compile_definitions(mechad_settings INTERFACE _GLIBCXX_ASSERTIONS)
    target_link_options(mechad_settings INTERFACE
        -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed)
endif()

if(MECHAD_FUZZ)
    if(MECHAD_SANITIZE)
        message(FATAL_ERROR "MECHAD_FUZZ chooses its own sanitizers: leave MECHAD_SANITIZE empty")
    endif()
    set(sanitizers fuzzer-no-link,address,undefined)
else()
    set(sanitizers ${MECHAD_SANITIZE})
endif()
if(sanitizers)
    # Lines for the reports and no more; tests mostly wait, so that optimizing takes longer than it
    # saves, but for fuzzers.
    target_compile_options(mechad_settings INTERFACE
        -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1
        $<$<BOOL:${MECHAD_FUZZ}>:-O1>)
    target_link_options(mechad_settings INTERFACE -fsanitize=${sanitizers})
    # Asio's fences are beyond what ThreadSanitizer models; g++ says so at each.
    if(sanitizers STREQUAL thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
        target_compile_options(mechad_settings INTERFACE -Wno-tsan)
    endif()
endif()
