# Turning CUDA on, for this build and for projects that use the installed package: both compile
# `.cu` files of kernel bodies, and CMake 3.25 needs help with that.

# reprise_enable_cuda(FOUND): finds nvcc on PATH or in the usual folder, enables the language and
# sets FOUND. At the top of a project, before its targets are made: a language is enabled nowhere
# else, and a target takes its CUDA settings when it is made.
macro(reprise_enable_cuda found)
  set(${found} OFF)
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(REPRISE_NVCC nvcc HINTS /usr/local/cuda/bin)
    if(REPRISE_NVCC)
      set(CMAKE_CUDA_COMPILER ${REPRISE_NVCC})
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER)
    # Machine code for Hopper, PTX from Ampere on for everything else.
    set(CMAKE_CUDA_ARCHITECTURES 80-virtual 90-real CACHE STRING "CUDA architectures")
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    set(CMAKE_CUDA_STANDARD 20)
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      # CMake 3.25 does not know how nvcc spells it.
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(${found} ON)
  endif()
endmacro()
