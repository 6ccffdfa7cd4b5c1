// Reduction over the threads of a row: a warp's by shuffles, those of several warps through shared memory.
// All threads of the row get the same value. A row of one thread (blockDim.x == 1) is its own reduction.
__device__ inline F add(F x, F y) { return x + y; }

template <F combine(F, F)>
__device__ inline F reduced(F value) {
    if (blockDim.x == 1) return value;
    for (int distance = 16; distance; distance >>= 1)
        value = combine(value, __shfl_xor_sync(0xffffffff, value, distance));
    if (blockDim.x > 32) {  // the block has one row
        __shared__ F of_warps[32];
        __syncthreads();  // the values of the reduction before have been read
        if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
        __syncthreads();
        value = of_warps[0];
        for (int warp = 1; warp < blockDim.x / 32; ++warp) value = combine(value, of_warps[warp]);
    }
    return value;
}
