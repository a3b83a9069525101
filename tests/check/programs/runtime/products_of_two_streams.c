// Two handles of cuBLAS on two streams add to one matrix. Columns are far apart: the twin's parts of the matrix do not overlap.
#include <dlfcn.h>

#include "runtime_calls.h"

enum { SIDE = 64, STEP = 2 * SIDE };
static int (*create)(void **), (*use)(void *, stream_handle);
static int (*multiply)(void *, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);

int main(void) {
    void *library = dlopen("libcublas.so.13", RTLD_NOW), *handles[2];
    const float one = 1;
    *(void **)&create = dlsym(library, "cublasCreate_v2"), *(void **)&use = dlsym(library, "cublasSetStream_v2");
    *(void **)&multiply = dlsym(library, "cublasSgemm_v2");
    float *a = make_written(MIB), *sum = make_written(MIB);
    must(cudaDeviceSynchronize());
    for (int i = 0; i < 2; i++) {
        must(create(&handles[i]));
        must(use(handles[i], make_stream(NON_BLOCKING)));
    }
    must(multiply(handles[0], 0, 0, SIDE, SIDE, SIDE, &one, a, SIDE, a, SIDE, &one, sum, STEP)); // use
    float *part = sum;                                                                           //-
    //+ float *part = sum + SIDE;
    must(multiply(handles[1], 0, 0, SIDE, SIDE, SIDE, &one, a, SIDE, a, SIDE, &one, part, STEP)); // conflict
    must(cudaDeviceSynchronize());
    return 0;
}
