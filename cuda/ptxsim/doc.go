// Package ptxsim is a CUDA device made of the processor, for tests: it runs the PTX of the kernels as it is (package driver's
// Driver) and multiplies matrices (Blas). It checks what a device does not: every access lies in a live allocation and is
// aligned, no two threads race in shared memory, no two blocks race in global memory, lanes that must meet do meet, and a
// launch stays within the limits of a device. Memory that nobody wrote is full of NaN.
//
// A module is parsed once (lex, parse, declare, operand), its registers are shared out (registers), and each instruction becomes
// a function over the 32 lanes of a warp (build and the files named after families of instructions). A warp runs until it
// meets a barrier (warp), a block until all warps end (block), and the blocks of a launch are shared out among goroutines
// (launch). What it does not know is an error when the module is loaded.
//
// Results are bit for bit a device's for integers, conversions and the rounded operations on floats (.rn); approximations
// (ex2, lg2, ...) are computed exactly and rounded, and the tensor cores' sums are in an order of our own.
package ptxsim
