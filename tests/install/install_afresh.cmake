# cmake -DBUILD=… -DSOURCE=… -DPREFIX=… -P install_afresh.cmake: empties PREFIX, installs BUILD into
# it, and looks at what came: no header includes one that was left out, no private header came
# along, and the package names no folder of the machine that built it.
include(${SOURCE}/cmake/private_headers.cmake)

file(REMOVE_RECURSE ${PREFIX})
execute_process(
  COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX}
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

set(faults)
file(GLOB_RECURSE headers RELATIVE ${PREFIX}/include
  ${PREFIX}/include/*.hpp ${PREFIX}/include/*.cuh)
list(LENGTH headers count)
if(count LESS 40)
  list(APPEND faults "only ${count} headers were installed")
endif()
foreach(header ${headers})
  file(STRINGS ${PREFIX}/include/${header} lines REGEX "^ *# *include *[<\"](reprise|tests|apps|workloads)/")
  foreach(line ${lines})
    string(REGEX REPLACE "^[^<\"]*[<\"]([^>\"]*)[>\"].*$" "\\1" included "${line}")
    if(NOT EXISTS ${PREFIX}/include/${included})
      list(APPEND faults "${header} includes ${included}, which is not installed")
    endif()
  endforeach()
  reprise_is_private(private ${PREFIX}/include/${header})
  if(private)
    list(APPEND faults "${header} is for its room alone")
  endif()
endforeach()

file(GLOB package ${PREFIX}/lib*/cmake/reprise/*.cmake ${PREFIX}/lib*/*/cmake/reprise/*.cmake)
list(LENGTH package count)
if(count LESS 4)
  list(APPEND faults "only ${count} package files were installed")
endif()
foreach(file ${package})
  file(READ ${file} text)
  foreach(folder ${SOURCE} ${BUILD})
    string(FIND "${text}" "${folder}" at)
    if(NOT at EQUAL -1)
      list(APPEND faults "${file} names ${folder}")
    endif()
  endforeach()
endforeach()

if(faults)
  list(JOIN faults "\n  " faults)
  message(FATAL_ERROR "the installed package is not whole:\n  ${faults}")
endif()
