# How a room becomes a target. Rooms list their files by name: a file nobody lists is not built.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

# What everything is compiled with. Warnings and contraction are our own affair: contraction is off
# everywhere on the CPU, because every rung of the CPU chain must give the same bits. An installed
# package passes on what its headers need (C++20, and constexpr functions in device code), and the
# sanitizers, without which libraries that were built with them do not link.
add_library(reprise_options INTERFACE)
target_compile_options(reprise_options INTERFACE
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wnon-virtual-dtor;-ffp-contract=off>>)
# Where files are compiled as one, a parameter may have the name of a function in another file, and
# g++ takes each of them for a header, whose anonymous namespaces it warns of.
set(as_one $<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>)
target_compile_options(reprise_options INTERFACE
  $<BUILD_INTERFACE:$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:${as_one}>>:-Wshadow>>
  $<BUILD_INTERFACE:$<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,${as_one}>:-Wno-subobject-linkage>>)
target_compile_options(reprise_options INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffp-contract=off>>)
target_compile_features(reprise_options INTERFACE $<INSTALL_INTERFACE:cxx_std_20>)
target_include_directories(reprise_options INTERFACE
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(NOT REPRISE_CHECKS)
  target_compile_definitions(reprise_options INTERFACE REPRISE_WITHOUT_CHECKS=1)
endif()
if(REPRISE_SANITIZE)
  target_compile_options(reprise_options INTERFACE
    -fsanitize=${REPRISE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(reprise_options INTERFACE -fsanitize=${REPRISE_SANITIZE})
endif()
# Behind reprise_options: without the sanitizer of undefined behaviour, the dearest to compile.
add_library(reprise_defined INTERFACE)
target_compile_options(reprise_defined INTERFACE -fno-sanitize=undefined)
if(REPRISE_MUTANTS)
  target_compile_definitions(reprise_options INTERFACE $<BUILD_INTERFACE:REPRISE_MUTANTS>)
endif()
if(REPRISE_STATIC)
  target_link_options(reprise_options INTERFACE -static-libstdc++ -static-libgcc)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
endif()
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
add_library(reprise_fmt INTERFACE)
target_link_libraries(reprise_fmt INTERFACE
  $<IF:$<BOOL:${REPRISE_STATIC}>,fmt::fmt-header-only,fmt::fmt>)
find_package(nlohmann_json REQUIRED)

# Sets REPRISE_CUDA_FOUND; a build without CUDA is whole. And REPRISE_CUDA_CODE: what `.cu` files are
# compiled to, which decides what kernels a card has.
macro(reprise_find_cuda)
  set(REPRISE_CUDA_FOUND OFF)
  if(REPRISE_CUDA)
    reprise_enable_cuda(REPRISE_CUDA_FOUND)
  endif()
  set(REPRISE_CUDA_CODE "")
  if(REPRISE_CUDA_FOUND)
    set(REPRISE_CUDA_CODE ${CMAKE_CUDA_ARCHITECTURES})
    if(REPRISE_CUDA_CODE STREQUAL "native")
      set(REPRISE_CUDA_CODE ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
    endif()
    if(NOT REPRISE_CUDA_CODE MATCHES "^[0-9]")
      message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES is ${CMAKE_CUDA_ARCHITECTURES}: "
        "list the architectures by number, such as 80-virtual;90-real")
    endif()
    list(JOIN REPRISE_CUDA_CODE " " REPRISE_CUDA_CODE)
    message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION}: the CUDA half is built")
  else()
    message(STATUS "no CUDA toolkit: devices are cpu only")
  endif()
endmacro()

# reprise_room(NAME SOURCES a.cpp … [CUDA a.cu …] [NEEDS other rooms …] [LIBRARIES …]
#              [BUILT_WITH …])
#
# Makes reprise_NAME (alias reprise::NAME). CUDA files are compiled only when a toolkit is there;
# REPRISE_HAS_CUDA tells the room's .cpp files whether they were, and those of whoever uses it.
# BUILT_WITH: headers that only the room's .cpp files see; users of the room do not need them.
function(reprise_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;CUDA;NEEDS;LIBRARIES;BUILT_WITH" ${ARGN})
  if(REPRISE_CUDA_FOUND)
    list(APPEND ROOM_SOURCES ${ROOM_CUDA})
  endif()
  set(reach PUBLIC)
  if(NOT ROOM_SOURCES)
    set(reach INTERFACE)
  endif()
  add_library(reprise_${name} ${ROOM_SOURCES})
  if(REPRISE_SANITIZE AND NOT REPRISE_SANITIZE_ALL)
    # Under a sanitizer a room is built where a test needs it.
    set_target_properties(reprise_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  set_target_properties(reprise_${name} PROPERTIES
    UNITY_BUILD ${REPRISE_UNITY} UNITY_BUILD_BATCH_SIZE 0)  # 0: all of its .cpp files are one
  add_library(reprise::${name} ALIAS reprise_${name})
  target_link_libraries(reprise_${name} ${reach} reprise_options)
  foreach(other ${ROOM_NEEDS})
    target_link_libraries(reprise_${name} ${reach} reprise_${other})
  endforeach()
  target_link_libraries(reprise_${name} ${reach} ${ROOM_LIBRARIES})
  foreach(library ${ROOM_BUILT_WITH})
    target_link_libraries(reprise_${name} PRIVATE $<BUILD_INTERFACE:${library}>)
  endforeach()
  if(REPRISE_CUDA_FOUND)
    target_compile_definitions(reprise_${name} ${reach} REPRISE_HAS_CUDA=1)
  endif()
endfunction()
