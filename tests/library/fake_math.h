// fake_math.h: the state of the stand-in for cuBLAS and cuFFT. The test links it and the library loads it, as one object.
#ifndef FAKE_MATH_H
#define FAKE_MATH_H

#include <stddef.h>

#define FAKE_API __attribute__((visibility("default")))

// A cublasHandle_t.
struct fake_handle {
    void *stream;
    void *workspace;
    size_t workspace_bytes;
};

// A cufftHandle is an index from 1.
struct fake_plan {
    int live;
    int auto_allocation;
    int rank;
    int type;
    long long n[3];
    long long batch;
    long long in_distance;
    int packed; // no embedding was given
    void *stream;
    void *work_area;
};

enum { FAKE_PLANS = 16, FAKE_WORK_BYTES_PER_POINT = 8 };

extern FAKE_API struct fake_plan fake_plans[FAKE_PLANS];
// Name of the function that fails next; NULL: none.
extern FAKE_API const char *fake_fails;

#endif
