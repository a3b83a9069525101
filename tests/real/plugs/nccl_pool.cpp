// Tests a pool whose blocks are registered with NCCL, using NCCL's own header. The library is the simulator's stand-in, because NVIDIA's
// carries its static runtime.
#include <cuda_runtime_api.h>
#include <vram/nccl.hpp>

#include "expect.h"

int main() {
    ncclUniqueId id;
    ncclComm_t communicator;
    EXPECT(cudaSetDevice(0) == cudaSuccess && cudaFree(nullptr) == cudaSuccess);
    EXPECT(ncclGetUniqueId(&id) == ncclSuccess && ncclCommInitRank(&communicator, 1, id, 0) == ncclSuccess);
    vram::nccl_registered registered(communicator);
    vram_pool_options options = registered.options();
    vram_pool *pool;
    uint64_t first, second;
    EXPECT(vram_pool_create(vram::process_allocator(), 0, &options, &pool) == VRAM_OK);
    EXPECT(vram_pool_malloc(pool, 1 << 20, 0, &first) == VRAM_OK && registered.count() == 1);
    EXPECT(vram_pool_malloc(pool, 30 << 20, 0, &second) == VRAM_OK && registered.count() == 2);
    EXPECT(ncclAllReduce((void *)first, (void *)first, 1000, ncclFloat, ncclSum, communicator, nullptr) == ncclSuccess);
    EXPECT(cudaDeviceSynchronize() == cudaSuccess);
    EXPECT(vram_free(vram::process_allocator(), first) == VRAM_OK && registered.count() == 2); // cached, and still registered
    EXPECT(vram_free(vram::process_allocator(), second) == VRAM_OK && vram_pool_empty_cache(pool) == VRAM_OK && registered.count() == 0);
    vram_pool_release(pool);
    EXPECT(ncclCommDestroy(communicator) == ncclSuccess);
    return OK();
}
