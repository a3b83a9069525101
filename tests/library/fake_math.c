#include "fake_math.h"

#include <string.h>

// Signatures from cublas_v2.h and cufft.h, with int for their enums and cuFFT's handles.
FAKE_API int cublasSetStream_v2(struct fake_handle *handle, void *stream);
FAKE_API int cublasSetWorkspace_v2(struct fake_handle *handle, void *workspace, size_t size_bytes);
FAKE_API int cufftCreate(int *plan);
FAKE_API int cufftDestroy(int plan);
FAKE_API int cufftSetAutoAllocation(int plan, int on);
FAKE_API int cufftMakePlanMany64(int plan, int rank, long long *n, long long *in_embed, long long in_stride, long long in_distance,
                                 long long *out_embed, long long out_stride, long long out_distance, int type, long long batch,
                                 size_t *work_bytes);
FAKE_API int cufftSetStream(int plan, void *stream);
FAKE_API int cufftSetWorkArea(int plan, void *address);

struct fake_plan fake_plans[FAKE_PLANS];
const char *fake_fails;

static int fails(const char *function) {
    if (fake_fails == NULL || strcmp(fake_fails, function) != 0) return 0;
    fake_fails = NULL;
    return 1;
}

// Resets the workspace, as cuBLAS does.
int cublasSetStream_v2(struct fake_handle *handle, void *stream) {
    if (fails("cublasSetStream_v2")) return 1;
    *handle = (struct fake_handle){.stream = stream};
    return 0;
}

int cublasSetWorkspace_v2(struct fake_handle *handle, void *workspace, size_t size_bytes) {
    if (fails("cublasSetWorkspace_v2")) return 7;
    handle->workspace = workspace;
    handle->workspace_bytes = size_bytes;
    return 0;
}

static struct fake_plan *plan_of(int plan) { return plan > 0 && plan < FAKE_PLANS && fake_plans[plan].live ? &fake_plans[plan] : NULL; }

int cufftCreate(int *plan) {
    if (fails("cufftCreate")) return 2;
    for (int i = 1; i < FAKE_PLANS; i++) {
        if (fake_plans[i].live) continue;
        fake_plans[i] = (struct fake_plan){.live = 1, .auto_allocation = 1};
        *plan = i;
        return 0;
    }
    return 2;
}

int cufftDestroy(int plan) {
    if (plan_of(plan) == NULL) return 1;
    fake_plans[plan].live = 0;
    return 0;
}

int cufftSetAutoAllocation(int plan, int on) {
    if (plan_of(plan) == NULL || fails("cufftSetAutoAllocation")) return 1;
    fake_plans[plan].auto_allocation = on;
    return 0;
}

int cufftMakePlanMany64(int plan, int rank, long long *n, long long *in_embed, long long in_stride, long long in_distance,
                        long long *out_embed, long long out_stride, long long out_distance, int type, long long batch, size_t *work_bytes) {
    (void)in_stride, (void)out_stride, (void)out_distance;
    struct fake_plan *made = plan_of(plan);
    if (made == NULL || fails("cufftMakePlanMany64")) return 1;
    long long points = batch;
    for (int i = 0; i < rank; i++) points *= n[i];
    made->rank = rank;
    made->type = type;
    made->batch = batch;
    made->in_distance = in_distance;
    made->packed = in_embed == NULL && out_embed == NULL;
    memcpy(made->n, n, (size_t)rank * sizeof *n);
    *work_bytes = (size_t)points * FAKE_WORK_BYTES_PER_POINT;
    return 0;
}

int cufftSetStream(int plan, void *stream) {
    if (plan_of(plan) == NULL || fails("cufftSetStream")) return 1;
    fake_plans[plan].stream = stream;
    return 0;
}

int cufftSetWorkArea(int plan, void *address) {
    if (plan_of(plan) == NULL || fails("cufftSetWorkArea")) return 1;
    fake_plans[plan].work_area = address;
    return 0;
}
