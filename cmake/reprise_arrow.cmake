# Finding Arrow C++, for this build and for projects that use the installed package: a development
# package of the system, or the pyarrow wheel, which has headers and the shared library.

# reprise_find_arrow(): sets REPRISE_ARROW_FOUND, and makes the target reprise_arrow where it is
# found. Python is asked where its wheel is, so that nothing is guessed.
macro(reprise_find_arrow)
  set(REPRISE_ARROW_FOUND OFF)
  if(TARGET reprise_arrow)
    set(REPRISE_ARROW_FOUND ON)
  elseif((REPRISE_ARROW OR NOT DEFINED REPRISE_ARROW) AND NOT REPRISE_STATIC)
    # Arrow is a shared library: a binary that is carried to another machine has none of it.
    find_package(Arrow QUIET)
    set(reprise_arrow_library)
    if(TARGET Arrow::arrow_shared)
      add_library(reprise_arrow INTERFACE IMPORTED GLOBAL)
      set_target_properties(reprise_arrow PROPERTIES INTERFACE_LINK_LIBRARIES Arrow::arrow_shared)
      set(REPRISE_ARROW_FOUND ON)
      message(STATUS "Arrow ${Arrow_VERSION}: run directories are built")
    else()
      find_program(REPRISE_PYTHON python3)
      if(REPRISE_PYTHON)
        execute_process(
          COMMAND ${REPRISE_PYTHON} -c "import glob, os, pyarrow
print(pyarrow.get_include())
folder = pyarrow.get_library_dirs()[0]
print(min(glob.glob(os.path.join(folder, 'libarrow.so*')), key=len))
print(pyarrow.__version__)"
          OUTPUT_VARIABLE reprise_arrow_said ERROR_QUIET RESULT_VARIABLE reprise_arrow_failed
          OUTPUT_STRIP_TRAILING_WHITESPACE)
        if(reprise_arrow_failed EQUAL 0)
          string(REPLACE "\n" ";" reprise_arrow_said "${reprise_arrow_said}")
          list(GET reprise_arrow_said 0 reprise_arrow_include)
          list(GET reprise_arrow_said 1 reprise_arrow_library)
          list(GET reprise_arrow_said 2 reprise_arrow_version)
        endif()
      endif()
      if(reprise_arrow_library AND EXISTS "${reprise_arrow_library}")
        add_library(reprise_arrow SHARED IMPORTED GLOBAL)
        set_target_properties(reprise_arrow PROPERTIES
          IMPORTED_LOCATION "${reprise_arrow_library}"
          INTERFACE_INCLUDE_DIRECTORIES "${reprise_arrow_include}")
        set(REPRISE_ARROW_FOUND ON)
        message(STATUS "Arrow of pyarrow ${reprise_arrow_version}: run directories are built")
      endif()
    endif()
  endif()
  if(NOT REPRISE_ARROW_FOUND)
    message(STATUS "no Arrow C++ (pip install pyarrow): run directories are left out")
  endif()
endmacro()
