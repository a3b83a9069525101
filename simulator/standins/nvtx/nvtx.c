// NVTX: annotations are ignored, but depths of ranges are counted because calls return them.
#include <stdint.h>

#include "../common/calls.h"

static _Thread_local int depth;
static uint64_t last_range;

#define PUSH(name)                                                                                                                         \
    int name(const void *text) { return depth++; }
PUSH(nvtxRangePushA)
PUSH(nvtxRangePushW)
PUSH(nvtxRangePushEx)
int nvtxDomainRangePushEx(void *domain, const void *attributes) { return depth++; }
int nvtxRangePop(void) { return depth > 0 ? --depth : -1; }
int nvtxDomainRangePop(void *domain) { return nvtxRangePop(); }

#define START(name)                                                                                                                        \
    uint64_t name(const void *text) { return __atomic_add_fetch(&last_range, 1, __ATOMIC_RELAXED); }
START(nvtxRangeStartA)
START(nvtxRangeStartW)
START(nvtxRangeStartEx)
START(nvtxDomainRangeStartEx)

#define SILENT(name)                                                                                                                       \
    void name(void) {}
SILENT(nvtxInitialize)
SILENT(nvtxMarkA)
SILENT(nvtxMarkW)
SILENT(nvtxMarkEx)
SILENT(nvtxRangeEnd)
SILENT(nvtxDomainMarkEx)
SILENT(nvtxDomainRangeEnd)
SILENT(nvtxNameCategoryA)
SILENT(nvtxNameCategoryW)
SILENT(nvtxNameOsThreadA)
SILENT(nvtxNameOsThreadW)
SILENT(nvtxDomainNameCategoryA)
SILENT(nvtxDomainNameCategoryW)
SILENT(nvtxDomainResourceDestroy)
SILENT(nvtxDomainDestroy)
SILENT(nvtxNameCuDeviceA)
SILENT(nvtxNameCuDeviceW)
SILENT(nvtxNameCuContextA)
SILENT(nvtxNameCuContextW)
SILENT(nvtxNameCuStreamA)
SILENT(nvtxNameCuStreamW)
SILENT(nvtxNameCuEventA)
SILENT(nvtxNameCuEventW)
SILENT(nvtxNameCudaDeviceA)
SILENT(nvtxNameCudaDeviceW)
SILENT(nvtxNameCudaStreamA)
SILENT(nvtxNameCudaStreamW)
SILENT(nvtxNameCudaEventA)
SILENT(nvtxNameCudaEventW)

#define HANDLE_OF_NOTHING(name)                                                                                                            \
    void *name(void) { return &last_range; }
HANDLE_OF_NOTHING(nvtxDomainCreateA)
HANDLE_OF_NOTHING(nvtxDomainCreateW)
HANDLE_OF_NOTHING(nvtxDomainRegisterStringA)
HANDLE_OF_NOTHING(nvtxDomainRegisterStringW)
HANDLE_OF_NOTHING(nvtxDomainResourceCreate)
