// What a compiler's view of a file depends on: REPRISE_HD marks what both compilers build, host
// code and, under nvcc, device code; REPRISE_BODIES names the namespace of kernel bodies.
//
// A file of CPU bodies is compiled twice (docs/kernels.md): as it is, and with REPRISE_CHECKED,
// where the views note each byte that is touched. What differs between the two lies in an inline
// namespace of its own, so that no name has two definitions:
//
//   namespace mine::REPRISE_BODIES { … }    mine::plain::f or mine::checked::f, and mine::f for
//   short
#pragma once

#if defined(__CUDACC__)
#define REPRISE_HD __host__ __device__
#else
#define REPRISE_HD
#endif

#if defined(REPRISE_CHECKED)
#if defined(__CUDACC__)
#error "REPRISE_CHECKED is for CPU bodies: give reprise_checked_bodies only .cpp files"
#endif
#define REPRISE_BODIES inline checked
#else
#define REPRISE_BODIES inline plain
#endif

// Bodies for the newer instructions of x86-64 processors. Checked bodies have the generic rung
// only: every rung gives the same bits and touches the same bytes.
#if defined(__x86_64__) && !defined(REPRISE_CHECKED)
#define REPRISE_X86_RUNGS
#endif
