// cuFFT: plans are numbers, sizes of their work areas come from the table, and transforms are launches of work.
#include <pthread.h>
#include <stdlib.h>

#include "../common/calls.h"

enum { INVALID_PLAN = 1, ALLOC_FAILED = 2, INVALID_VALUE = 4, INTERNAL_ERROR = 5, EXEC_FAILED = 6, INVALID_SIZE = 8, NOT_SUPPORTED = 16 };
enum { R2C = 0x2a, C2R = 0x2c, C2C = 0x29, D2Z = 0x6a, Z2D = 0x6c, Z2Z = 0x69, DOUBLE_BIT = 0x40 };

struct plan {
    bool live, made, own_area;
    bool takes_area; // allocate the work area when the plan is made
    uint64_t stream;
    void *area;
    size_t area_bytes;
    int64_t properties[8];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards the table; plans themselves are not locked
static struct plan **plans;                               // indexed by a plan's number
static int plan_count;

static struct plan *plan_of(int number) {
    (void)pthread_mutex_lock(&mutex);
    struct plan *plan = number >= 0 && number < plan_count ? plans[number] : NULL;
    (void)pthread_mutex_unlock(&mutex);
    return plan;
}

// Returns a free number, growing the table if needed, or -1 if out of memory.
static int free_number(void) {
    for (int i = 0; i < plan_count; i++)
        if (plans[i] == NULL) return i;
    struct plan **grown = realloc(plans, ((size_t)plan_count + 1) * sizeof *grown);
    if (grown == NULL) return -1;
    plans = grown;
    plans[plan_count] = NULL;
    return plan_count++;
}

int cufftCreate(int *number) {
    if (number == NULL) return INVALID_VALUE;
    if (standin_begin() == NULL) return 7; // CUFFT_SETUP_FAILED
    struct plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) return ALLOC_FAILED;
    plan->live = plan->takes_area = true;
    (void)pthread_mutex_lock(&mutex);
    const int free_one = free_number();
    if (free_one >= 0) plans[free_one] = plan;
    (void)pthread_mutex_unlock(&mutex);
    if (free_one < 0) {
        free(plan);
        return ALLOC_FAILED;
    }
    *number = free_one;
    return 0;
}

int cufftDestroy(int number) {
    (void)pthread_mutex_lock(&mutex);
    struct plan *plan = number >= 0 && number < plan_count ? plans[number] : NULL;
    if (plan != NULL) plans[number] = NULL;
    (void)pthread_mutex_unlock(&mutex);
    if (plan == NULL) return INVALID_PLAN;
    if (plan->own_area) standin_give(plan->area);
    free(plan);
    return 0;
}

// --- sizes -----------------------------------------------------------------------------------------------------------------------------
struct transform {
    int rank;
    int64_t n[3];
    int64_t batch;
    size_t element; // bytes of a complex number
    bool half;      // one side is real: the last dimension has n / 2 + 1 complex numbers
};

static struct transform of_type(int type, int64_t batch) {
    return (struct transform){.batch = batch, .element = (type & DOUBLE_BIT) != 0 ? 16 : 8, .half = type != C2C && type != Z2Z};
}

static int measure_transform(const struct transform *transform, size_t *bytes) {
    uint64_t points = (uint64_t)transform->batch;
    if (transform->rank < 1 || transform->rank > 3 || transform->batch < 1) return transform->batch < 1 ? INVALID_SIZE : INVALID_VALUE;
    for (int i = 0; i < transform->rank; i++) {
        const bool is_last = i == transform->rank - 1;
        if (transform->n[i] < 1) return INVALID_SIZE;
        const uint64_t length = transform->half && is_last ? (uint64_t)transform->n[i] / 2 + 1 : (uint64_t)transform->n[i];
        if (__builtin_mul_overflow(points, length, &points)) return INVALID_SIZE;
    }
    const uint64_t percent = standin_size(STANDIN_CUFFT_BYTES_PER_ELEMENT, standin_library_version)->bytes;
    uint64_t total;
    if (__builtin_mul_overflow(points, transform->element * percent, &total)) return INVALID_SIZE;
    *bytes = (size_t)(total / 100);
    return 0;
}

static int make_transform(int number, const struct transform *transform, size_t *bytes) {
    struct plan *plan = plan_of(number);
    size_t needed = 0;
    if (plan == NULL || plan->made) return INVALID_PLAN;
    const int status = measure_transform(transform, &needed);
    if (status != 0) return status;
    if (plan->takes_area && plan->area == NULL) {
        plan->area = standin_take(needed);
        if (plan->area == NULL) return ALLOC_FAILED;
        plan->own_area = true;
    }
    plan->made = true;
    plan->area_bytes = needed;
    if (bytes != NULL) *bytes = needed;
    return 0;
}

// Sets the lengths, which are ints (narrow) or 64-bit numbers (wide).
static struct transform transform_many(struct transform transform, int rank, const int *narrow, const long long *wide) {
    transform.rank = narrow == NULL && wide == NULL ? 0 : rank;
    for (int i = 0; i < transform.rank && i < 3; i++) transform.n[i] = narrow != NULL ? narrow[i] : wide[i];
    return transform;
}

// Makes a transform between two data types; an element has the size of the wider side.
static struct transform of_types(int in, int out, int64_t batch) {
    const bool in_complex = in == 4 || in == 5 || in == 6 || in == 15, out_complex = out == 4 || out == 5 || out == 6 || out == 15;
    return (struct transform){.batch = batch, .half = !in_complex || !out_complex, .element = standin_width(in_complex ? in : out)};
}

static int estimate_transform(const struct transform *transform, size_t *bytes) {
    return bytes == NULL ? INVALID_VALUE : standin_begin() == NULL ? INTERNAL_ERROR : measure_transform(transform, bytes);
}

static int plan_at_once(int *number, const struct transform *transform) {
    int status = cufftCreate(number);
    if (status != 0) return status;
    status = make_transform(*number, transform, NULL);
    if (status != 0) (void)cufftDestroy(*number);
    return status;
}

static struct transform in_1d(int n, int type, int batch) { return transform_many(of_type(type, batch), 1, (int[]){n}, NULL); }
static struct transform in_2d(int x, int y, int type) { return transform_many(of_type(type, 1), 2, (int[]){x, y}, NULL); }
static struct transform in_3d(int x, int y, int z, int type) { return transform_many(of_type(type, 1), 3, (int[]){x, y, z}, NULL); }

#define ONCE(call, ...)                                                                                                                    \
    {                                                                                                                                      \
        const struct transform transform = __VA_ARGS__;                                                                                    \
        return call;                                                                                                                       \
    }
int cufftPlan1d(int *plan, int n, int type, int batch) ONCE(plan_at_once(plan, &transform),
                                                            in_1d(n, type, batch)) int cufftPlan2d(int *plan, int x, int y, int type)
    ONCE(plan_at_once(plan, &transform), in_2d(x, y, type)) int cufftPlan3d(int *plan, int x, int y, int z, int type) ONCE(
        plan_at_once(plan, &transform), in_3d(x, y, z, type)) int cufftMakePlan1d(int plan, int n, int type, int batch, size_t *bytes)
        ONCE(make_transform(plan, &transform, bytes), in_1d(n, type, batch)) int cufftMakePlan2d(
            int plan, int x, int y, int type,
            size_t *bytes) ONCE(make_transform(plan, &transform, bytes),
                                in_2d(x, y, type)) int cufftMakePlan3d(int plan, int x, int y, int z, int type, size_t *bytes)
            ONCE(make_transform(plan, &transform, bytes),
                 in_3d(x, y, z, type)) int cufftEstimate1d(int n, int type, int batch, size_t *bytes)
                ONCE(estimate_transform(&transform, bytes), in_1d(n, type, batch)) int cufftEstimate2d(int x, int y, int type,
                                                                                                       size_t *bytes)
                    ONCE(estimate_transform(&transform, bytes),
                         in_2d(x, y, type)) int cufftEstimate3d(int x, int y, int z, int type, size_t *bytes)
                        ONCE(estimate_transform(&transform, bytes),
                             in_3d(x, y, z, type)) int cufftGetSize1d(int plan, int n, int type, int batch, size_t *bytes)
                            ONCE(estimate_transform(&transform, bytes), in_1d(n, type, batch)) int cufftGetSize2d(int plan, int x, int y,
                                                                                                                  int type, size_t *bytes)
                                ONCE(estimate_transform(&transform, bytes),
                                     in_2d(x, y, type)) int cufftGetSize3d(int plan, int x, int y, int z, int type, size_t *bytes)
                                    ONCE(estimate_transform(&transform, bytes), in_3d(x, y, z, type))

                                        int cufftPlanMany(int *plan, int rank, int *n, int *in_embed, int in_step, int in_distance,
                                                          int *out_embed, int out_step, int out_distance, int type, int batch)
                                            ONCE(plan_at_once(plan, &transform),
                                                 transform_many(of_type(type, batch), rank,
                                                                n, NULL)) int cufftMakePlanMany(int plan, int rank, int *n,
                                                                                                int *in_embed, int in_step, int in_distance,
                                                                                                int *out_embed, int out_step,
                                                                                                int out_distance, int type, int batch,
                                                                                                size_t *bytes)
                                                ONCE(make_transform(plan, &transform, bytes),
                                                     transform_many(of_type(type, batch),
                                                                    rank, n, NULL)) int cufftMakePlanMany64(int plan, int rank,
                                                                                                            long long *n,
                                                                                                            long long *in_embed,
                                                                                                            long long in_step,
                                                                                                            long long in_distance,
                                                                                                            long long *out_embed,
                                                                                                            long long out_step,
                                                                                                            long long out_distance,
                                                                                                            int type, long long batch,
                                                                                                            size_t *bytes)
                                                    ONCE(make_transform(plan, &transform, bytes),
                                                         transform_many(of_type(type, batch), rank, NULL,
                                                                        n)) int cufftXtMakePlanMany(int plan, int rank, long long *n,
                                                                                                    long long *in_embed, long long in_step,
                                                                                                    long long in_distance, int in_type,
                                                                                                    long long *out_embed,
                                                                                                    long long out_step,
                                                                                                    long long out_distance, int out_type,
                                                                                                    long long batch, size_t *bytes,
                                                                                                    int execution_type)
                                                        ONCE(make_transform(plan, &transform, bytes),
                                                             transform_many(of_types(in_type, out_type, batch), rank,
                                                                            NULL, n)) int cufftEstimateMany(int rank, int *n, int *in_embed,
                                                                                                            int in_step, int in_distance,
                                                                                                            int *out_embed, int out_step,
                                                                                                            int out_distance, int type,
                                                                                                            int batch, size_t *bytes)
                                                            ONCE(estimate_transform(&transform, bytes),
                                                                 transform_many(of_type(type, batch), rank, n,
                                                                                NULL)) int cufftGetSizeMany(int plan, int rank, int *n,
                                                                                                            int *in_embed, int in_step,
                                                                                                            int in_distance, int *out_embed,
                                                                                                            int out_step, int out_distance,
                                                                                                            int type, int batch,
                                                                                                            size_t *bytes)
                                                                ONCE(estimate_transform(&transform, bytes),
                                                                     transform_many(of_type(type, batch), rank, n,
                                                                                    NULL)) int cufftGetSizeMany64(int plan, int rank,
                                                                                                                  long long *n,
                                                                                                                  long long *in_embed,
                                                                                                                  long long in_step,
                                                                                                                  long long in_distance,
                                                                                                                  long long *out_embed,
                                                                                                                  long long out_step,
                                                                                                                  long long out_distance,
                                                                                                                  int type, long long batch,
                                                                                                                  size_t *bytes)
                                                                    ONCE(estimate_transform(&transform, bytes),
                                                                         transform_many(of_type(type, batch), rank, NULL,
                                                                                        n)) int cufftXtGetSizeMany(int plan, int rank,
                                                                                                                   long long *n,
                                                                                                                   long long *in_embed,
                                                                                                                   long long in_step,
                                                                                                                   long long in_distance,
                                                                                                                   int in_type,
                                                                                                                   long long *out_embed,
                                                                                                                   long long out_step,
                                                                                                                   long long out_distance,
                                                                                                                   int out_type,
                                                                                                                   long long batch,
                                                                                                                   size_t *bytes,
                                                                                                                   int execution_type)
                                                                        ONCE(estimate_transform(&transform, bytes),
                                                                             transform_many(of_types(in_type, out_type, batch), rank, NULL,
                                                                                            n))

                                                                            int cufftGetSize(int number, size_t *bytes) {
    const struct plan *plan = plan_of(number);
    if (plan == NULL) return INVALID_PLAN;
    if (bytes == NULL) return INVALID_VALUE;
    *bytes = plan->area_bytes;
    return 0;
}

// --- settings of plans ----------------------------------------------------------------------------------------------
int cufftSetStream(int number, uint64_t stream) {
    struct plan *plan = plan_of(number);
    if (plan == NULL) return INVALID_PLAN;
    plan->stream = stream;
    return 0;
}

int cufftSetAutoAllocation(int number, int on) {
    struct plan *plan = plan_of(number);
    if (plan == NULL) return INVALID_PLAN;
    plan->takes_area = on != 0;
    return 0;
}

int cufftSetWorkArea(int number, void *area) {
    struct plan *plan = plan_of(number);
    if (plan == NULL) return INVALID_PLAN;
    if (plan->own_area) standin_give(plan->area);
    plan->own_area = false;
    plan->area = area;
    return 0;
}

int cufftXtSetWorkArea(int number, void **areas) { return areas == NULL ? INVALID_VALUE : cufftSetWorkArea(number, areas[0]); }

int cufftXtSetWorkAreaPolicy(int number, int policy, size_t *bytes) {
    const struct plan *plan = plan_of(number);
    if (plan == NULL) return INVALID_PLAN;
    if (bytes != NULL) *bytes = plan->area_bytes;
    return 0;
}

static int64_t *transform_property(int number, int name) {
    struct plan *plan = plan_of(number);
    return plan != NULL && name >= 0 && (size_t)name < sizeof plan->properties / sizeof *plan->properties ? &plan->properties[name] : NULL;
}

int cufftSetPlanPropertyInt64(int number, int name, long long value) {
    int64_t *place = transform_property(number, name);
    if (place == NULL) return INVALID_PLAN;
    *place = value;
    return 0;
}

int cufftGetPlanPropertyInt64(int number, int name, long long *value) {
    const int64_t *place = transform_property(number, name);
    if (place == NULL || value == NULL) return INVALID_PLAN;
    *value = *place;
    return 0;
}

int cufftResetPlanProperty(int number, int name) { return cufftSetPlanPropertyInt64(number, name, 0); }

// CUFFT_VERSION is major * 1000 + minor * 100 + patch.
int cufftGetVersion(int *version) {
    if (version == NULL) return INVALID_VALUE;
    *version = standin_version_part(0) * 1000 + standin_version_part(1) * 100 + standin_version_part(2);
    return 0;
}

int cufftGetProperty(int part, int *value) {
    if (value == NULL || standin_version_part(part) < 0) return INVALID_VALUE;
    *value = standin_version_part(part);
    return 0;
}

// --- transforms ------------------------------------------------------------------------------------------------------------------------
static int transform(int number, const char *name, const void *from, const void *to) {
    const struct plan *plan = plan_of(number);
    const struct standin_operand operands[] = {{from, 1, STANDIN_READS | STANDIN_OPEN}, {to, 1, STANDIN_WRITES | STANDIN_OPEN}};
    if (plan == NULL || !plan->made) return INVALID_PLAN;
    return standin_work_on(plan->stream, name, operands, sizeof operands / sizeof *operands) == 0 ? 0 : EXEC_FAILED;
}

#define TRANSFORM(name)                                                                                                                    \
    int name(int plan, void *from, void *to, int direction) { return transform(plan, #name, from, to); }
TRANSFORM(cufftExecC2C)
TRANSFORM(cufftExecC2R)
TRANSFORM(cufftExecR2C)
TRANSFORM(cufftExecZ2Z)
TRANSFORM(cufftExecZ2D)
TRANSFORM(cufftExecD2Z)
TRANSFORM(cufftXtExec)

// Callbacks only change computed values, so they have no effect.
DONE(cufftXtSetCallback)
DONE(cufftXtClearCallback)
DONE(cufftXtSetCallbackSharedSize)
DONE(cufftXtSetJITCallback)
DONE(__cufftXtSetJITCallback_12_7)

// Multi-device plans are not simulated.
#undef ABSENT
#define ABSENT(name)                                                                                                                       \
    int name(void) {                                                                                                                       \
        STANDIN_MISSING(#name);                                                                                                            \
        return NOT_SUPPORTED;                                                                                                              \
    }
ABSENT(cufftXtSetGPUs)
ABSENT(cufftXtMalloc)
ABSENT(cufftXtFree)
ABSENT(cufftXtMemcpy)
ABSENT(cufftXtQueryPlan)
ABSENT(cufftXtExecDescriptor)
ABSENT(cufftXtExecDescriptorC2C)
ABSENT(cufftXtExecDescriptorC2R)
ABSENT(cufftXtExecDescriptorR2C)
ABSENT(cufftXtExecDescriptorZ2Z)
ABSENT(cufftXtExecDescriptorZ2D)
ABSENT(cufftXtExecDescriptorD2Z)
