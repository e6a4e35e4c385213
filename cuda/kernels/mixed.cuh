// Runs of neighbouring elements (run.cuh) where the matrices of a call are of several types, which are asked at each access.
#pragma once
#include "run.cuh"

// BY_WIDTH calls a function template f<N> for the run of the call.
#define BY_WIDTH(run, f, ...)      \
  if (run == 8) f<8>(__VA_ARGS__); \
  else f<1>(__VA_ARGS__)
