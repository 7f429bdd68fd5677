# What `cmake --install` puts where: libraries, headers, the command and its model, and the package
# files by which another project finds them. docs/install.md is for users; tests/install installs
# into a fresh folder and builds tests/consumer against that alone.
include(CMakePackageConfigHelpers)
include(private_headers)

# Everything that a program needs: the devices, the kernels, steps and their recordings.
add_library(reprise_all INTERFACE)
add_library(reprise::reprise ALIAS reprise_all)
set_target_properties(reprise_all PROPERTIES EXPORT_NAME reprise)

set(exported reprise_options reprise_fmt reprise_all)
foreach(room ${REPRISE_ROOMS} ${REPRISE_ROOM_PARTS})
  target_link_libraries(reprise_all INTERFACE reprise_${room})
  set_target_properties(reprise_${room} PROPERTIES EXPORT_NAME ${room})
  list(APPEND exported reprise_${room})
endforeach()
set_target_properties(reprise_options PROPERTIES EXPORT_NAME options)
set_target_properties(reprise_fmt PROPERTIES EXPORT_NAME fmt)
install(TARGETS ${exported} EXPORT reprise_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

# A room's headers are for its users, but for those that say otherwise, and for the two rooms that
# stand behind the seam: of those, only what opens a device, and what a CUDA body is given.
set(left_out PATTERN "reprise/sim" EXCLUDE PATTERN "reprise/cuda" EXCLUDE)
foreach(room ${REPRISE_ROOMS})
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} reprise/${room}/*.hpp)
  foreach(header ${headers})
    reprise_is_private(private ${PROJECT_SOURCE_DIR}/${header})
    if(private)
      list(APPEND left_out PATTERN "${header}" EXCLUDE)
    endif()
  endforeach()
endforeach()
install(DIRECTORY reprise DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" ${left_out})
install(FILES reprise/sim/controls.hpp reprise/sim/device.hpp reprise/sim/journal.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reprise/sim)
install(FILES reprise/cuda/device.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reprise/cuda)
if(REPRISE_CUDA_FOUND)
  # The public headers with CUDA types.
  install(FILES reprise/cuda/call.cuh reprise/cuda/borrow.hpp
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reprise/cuda)
endif()

# Builds what is installed and no tests.
add_custom_target(reprise_package)
foreach(room ${REPRISE_ROOMS} ${REPRISE_ROOM_PARTS})
  add_dependencies(reprise_package reprise_${room})
endforeach()

if(TARGET reprise_command)
  add_dependencies(reprise_package reprise_command)
  install(TARGETS reprise_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY models/tiny-llama models/denoiser DESTINATION ${CMAKE_INSTALL_DATADIR}/reprise/models)
install(FILES workloads/memory/genesis.txt DESTINATION ${CMAKE_INSTALL_DATADIR}/reprise/workloads/memory)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/reprise)
install(EXPORT reprise_targets FILE reprise-targets.cmake NAMESPACE reprise::
  DESTINATION ${package})
configure_package_config_file(
  cmake/reprise-config.cmake.in ${CMAKE_BINARY_DIR}/package/reprise-config.cmake
  INSTALL_DESTINATION ${package})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/reprise-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_BINARY_DIR}/package/reprise-config.cmake
  ${CMAKE_BINARY_DIR}/package/reprise-config-version.cmake
  cmake/reprise_arrow.cmake
  cmake/reprise_cuda.cmake
  cmake/reprise_checked.cmake
  DESTINATION ${package})
