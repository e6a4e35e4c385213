// Package cpu is the device.Device of a CPU: float32 sums over float32, bfloat16 or quantised weights, on any number of
// threads. With Options.BFloat16, products with weights of the latter two round their other side to bfloat16.
//
// Tiers. The inner loops (kernels) exist three times: AVX-512 and AVX2 assembly, written by the generator in asmgen,
// and plain Go for every other machine. Where AVX-512 has a matrix unit (AMX) or dot products of bfloat16, products go by
// tiles instead (tile.go). The best one that the processor has is taken.
//
// Weights lie in panels of 32 rows of W, [N/32][K][32] (bfloat16: [N/32][K/2][32][2]), so that a product x·Wᵀ streams
// them as they are, with 32 outputs in two vectors; the input gradient dy·W transposes blocks of them on the fly.
// Quantised weights lie in the same panels (quant.go); products unpack a block at a time to bfloat16.
//
// Row invariance. Every element of every product is a sum over ascending k, cut into blocks whose lengths depend on K
// alone (kBlock, stretch), each a chain of multiply-adds or the matrix unit's own sum, and blocks are added in order. Attention cuts a path into blocks of keys by path
// position. Sums over a row have lanes and order that depend on the row's length alone. So the bits of a row depend on
// nothing but its own inputs: not on the rows beside it, the tile it falls into, nor the number of threads.
//
// Accuracy, in units of the last place, in every tier (tested in accuracy_test.go): exp 1.01, and 0 where it
// would be below the normal numbers; SwiGLU 2.5; RMSNorm 2.5; a rotation 2 of the larger of its two terms; a weight of a
// softmax 1.01 and what the rounding of its argument means, their sum 3; a log-sum-exp or log-probability 1 and 1e-6.
//
// Threads. A pool of spinning workers shares out the tasks of one operation at a time; every gradient element has one
// owner that adds its terms in a fixed order. Operations too small to gain run on the calling goroutine.
//
// Memory. Operations take their scratch memory from arenas that grow to what is needed once.
package cpu
