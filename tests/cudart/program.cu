// An ordinary program of the CUDA runtime, built with `nvcc -cudart shared`. Checks what does not need the results of kernels.
#include <cstdio>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                        \
    do {                                                                                                   \
        cudaError_t error_ = (call);                                                                       \
        if (error_ != cudaSuccess) {                                                                       \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));              \
            return 1;                                                                                      \
        }                                                                                                  \
    } while (0)
#define EXPECT(condition)                                                                                  \
    do {                                                                                                   \
        if (!(condition)) {                                                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                 \
            return 1;                                                                                      \
        }                                                                                                  \
    } while (0)

__global__ void scale(float *values, float by, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] *= by;
}

__constant__ float table[16];
__device__ int counter;

static int devices() {
    int count = 0, device = -1, driver = 0, runtime = 0;
    cudaDeviceProp prop;
    size_t free_bytes = 0, total_bytes = 0;
    CHECK(cudaGetDeviceCount(&count));
    CHECK(cudaSetDevice(count - 1));
    CHECK(cudaGetDevice(&device));
    EXPECT(device == count - 1);
    CHECK(cudaSetDevice(0));
    CHECK(cudaGetDeviceProperties(&prop, 0));
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    EXPECT(prop.totalGlobalMem == total_bytes && free_bytes <= total_bytes && prop.warpSize == 32 && prop.maxThreadsPerBlock == 1024);
    EXPECT(runtime == CUDART_VERSION && driver > 0);
    EXPECT(cudaSetDevice(99) == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice && cudaGetLastError() == cudaSuccess);
    return 0;
}

static int memory() {
    std::vector<char> host(1 << 20, 7), back(1 << 20);
    void *pointer = nullptr, *pinned = nullptr, *pitched = nullptr;
    size_t pitch = 0;
    CHECK(cudaMalloc(&pointer, 1 << 20));
    CHECK(cudaMemcpy(pointer, host.data(), 1 << 20, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(pointer, 3, 1000));
    CHECK(cudaMemcpy(back.data(), pointer, 1 << 20, cudaMemcpyDeviceToHost));
    EXPECT(back[0] == 3 && back[999] == 3 && back[1000] == 7);
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, pointer));
    EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
    CHECK(cudaPointerGetAttributes(&attributes, host.data()));
    EXPECT(attributes.type == cudaMemoryTypeUnregistered);
    CHECK(cudaMallocHost(&pinned, 4096));
    CHECK(cudaMallocPitch(&pitched, &pitch, 100, 5));
    EXPECT(pitch >= 100);
    CHECK(cudaMemset2D(pitched, pitch, 9, 100, 5));
    CHECK(cudaMemcpy2D(back.data(), 100, pitched, pitch, 100, 5, cudaMemcpyDefault));
    EXPECT(back[0] == 9 && back[499] == 9 && back[500] == 3);
    void *much = nullptr;
    EXPECT(cudaMalloc(&much, (size_t)1 << 45) == cudaErrorMemoryAllocation && much == nullptr);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
    EXPECT(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") == 0);
    CHECK(cudaFree(pitched));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(pointer));
    CHECK(cudaFree(nullptr));
    return 0;
}

static int streams() {
    cudaStream_t stream, other;
    cudaEvent_t start, end;
    void *pointer = nullptr;
    float ms = -1;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(start, stream));
    CHECK(cudaMallocAsync(&pointer, 1 << 20, stream));
    CHECK(cudaMemsetAsync(pointer, 1, 1 << 20, stream));
    scale<<<1024, 256, 0, stream>>>((float *)pointer, 2.0f, 1 << 18);
    CHECK(cudaGetLastError());
    CHECK(cudaFreeAsync(pointer, stream));
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaStreamWaitEvent(other, end, 0));
    CHECK(cudaStreamSynchronize(other));
    CHECK(cudaEventElapsedTime(&ms, start, end));
    EXPECT(ms >= 0);
    scale<<<1, 4096>>>((float *)nullptr, 1.0f, 0);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    CHECK(cudaStreamDestroy(other));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    return 0;
}

static int graphs() {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    char *pointer = nullptr, byte = 0;
    size_t nodes = 0;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&pointer, 4096));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemsetAsync(pointer, 5, 4096, stream));
    scale<<<1, 32, 0, stream>>>((float *)pointer, 2.0f, 32);
    CHECK(cudaMemsetAsync(pointer, 6, 100, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 3);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&byte, pointer + 200, 1, cudaMemcpyDeviceToHost));
    EXPECT(byte == 5);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(pointer));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}

static int symbols() {
    float values[16], back[16] = {0};
    int one = 1, read = 0;
    void *address = nullptr;
    for (int i = 0; i < 16; i++) values[i] = (float)i;
    CHECK(cudaMemcpyToSymbol(table, values, sizeof values));
    CHECK(cudaMemcpyFromSymbol(back, table, sizeof back));
    EXPECT(back[15] == 15);
    CHECK(cudaMemcpyToSymbol(counter, &one, sizeof one));
    CHECK(cudaGetSymbolAddress(&address, counter));
    CHECK(cudaMemcpy(&read, address, sizeof read, cudaMemcpyDeviceToHost));
    EXPECT(read == 1);
    return 0;
}

int main() {
    if (devices() || memory() || streams() || graphs() || symbols()) return 1;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaDeviceReset());
    printf("all is well\n");
    return 0;
}
