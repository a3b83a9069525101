// cuBLAS's first interface, without handles: one stream for the process, results as values, an error that is asked for.
#include "cublas.h"

static uint64_t stream;
static int last_error;

int cublasInit(void) { return standin_begin() == NULL ? CUBLAS_NOT_INITIALIZED : 0; }
int cublasShutdown(void) { return 0; }

int cublasGetError(void) {
    const int error = last_error;
    last_error = 0;
    return error;
}

int cublasSetKernelStream(uint64_t wanted) {
    stream = wanted;
    return 0;
}

int cublasGetVersion(int *version) {
    if (version == NULL) return CUBLAS_INVALID_VALUE;
    *version = standin_library_version;
    return 0;
}

int cublasAlloc(int count, int element, void **address) {
    if (count <= 0 || element <= 0 || address == NULL) return CUBLAS_INVALID_VALUE;
    *address = standin_take((size_t)count * (size_t)element);
    return *address == NULL ? CUBLAS_ALLOC_FAILED : 0;
}

int cublasFree(void *address) {
    standin_give(address);
    return 0;
}

static void launch_work(void) {
    if (standin_work(stream) != 0) last_error = CUBLAS_EXECUTION_FAILED;
}

static void work_and_wait(void) {
    launch_work();
    if (standin_driver() != NULL) (void)standin_driver()->stream_synchronize(stream);
}

#define LEGACY(name)                                                                                                                       \
    void name(void) { launch_work(); }
#define LEGACY_RESULT(name, type)                                                                                                          \
    type name(void) {                                                                                                                      \
        work_and_wait();                                                                                                                   \
        return (type){0};                                                                                                                  \
    }
#include "cublas_legacy_calls.def"
