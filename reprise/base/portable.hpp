// REPRISE_HD marks what both compilers build: host code, and device code under nvcc.
#pragma once

#if defined(__CUDACC__)
#define REPRISE_HD __host__ __device__
#else
#define REPRISE_HD
#endif
