# Checked bodies, for this build and for projects that use the installed package.

# reprise_checked_bodies(TARGET a.cpp …): compiles these files of TARGET, which hold CPU bodies and
# lie in namespaces `x::REPRISE_BODIES`, a second time: with views that note what is touched, for
# devices that compare that with what a launch declared (docs/kernels.md). The objects become part of
# TARGET. Once for each target.
function(reprise_checked_bodies target)
  set(again ${target}_checked)
  add_library(${again} OBJECT ${ARGN})
  # What TARGET is compiled with, whenever it gets that.
  target_link_libraries(${again} PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
  foreach(kind COMPILE_DEFINITIONS COMPILE_OPTIONS INCLUDE_DIRECTORIES)
    set_property(TARGET ${again} PROPERTY ${kind} $<TARGET_PROPERTY:${target},${kind}>)
  endforeach()
  set_property(TARGET ${again} APPEND PROPERTY COMPILE_DEFINITIONS REPRISE_CHECKED)
  # They are run to be looked at: half of the time to compile them is saved.
  set_property(TARGET ${again} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)
  foreach(kind CXX_STANDARD CXX_EXTENSIONS POSITION_INDEPENDENT_CODE UNITY_BUILD UNITY_BUILD_BATCH_SIZE)
    get_target_property(value ${target} ${kind})
    if(NOT value STREQUAL "value-NOTFOUND")
      set_property(TARGET ${again} PROPERTY ${kind} ${value})
    endif()
  endforeach()
  # What undefined behaviour there is in a body is found in its first copy: a third of the time, or half.
  if(REPRISE_SANITIZE MATCHES undefined)
    target_link_libraries(${again} PRIVATE reprise_defined)
  endif()
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${again}>)
endfunction()
