// cuBLASLt: descriptors that store settings, and one algorithm for every product.
//
// Programs may keep descriptors in their own memory (initialized by the _internal functions) and copy them by value. Settings are therefore
// stored inside the structure, within the size of the oldest version.
#include "cublas.h"

// An attribute: its offset after the head, and its size.
struct field {
    short number;
    unsigned short offset, bytes;
};

// Kinds of descriptors; the kind is in the first word.
enum { LAYOUT = 1, MATMUL, TRANSFORM, PREFERENCE, EMULATION };
struct descriptor {
    uint64_t kind;
    unsigned char values[];
};
#define KIND(number) (UINT64_C(0x63756c7400000000) | (number))

static const struct field layout_fields[] = {{0, 0, 4},  {1, 4, 4},  {2, 8, 8},  {3, 16, 8},  {4, 24, 8},  {5, 52, 4},  {6, 32, 8},
                                             {7, 40, 8}, {8, 48, 4}, {9, 56, 8}, {10, 64, 8}, {11, 72, 8}, {12, 80, 4}, {13, 84, 4}};
static const struct field matmul_fields[] = {
    {0, 0, 4},    {1, 4, 4},    {2, 8, 4},    {3, 12, 4},   {4, 16, 4},   {5, 20, 4},   {6, 24, 4},   {7, 28, 4},   {8, 32, 8},
    {10, 40, 8},  {11, 48, 8},  {12, 56, 8},  {13, 64, 8},  {14, 72, 8},  {15, 80, 4},  {25, 84, 1},  {17, 88, 8},  {18, 96, 8},
    {19, 104, 8}, {20, 112, 8}, {21, 120, 8}, {22, 128, 4}, {26, 132, 4}, {23, 136, 8}, {24, 144, 8}, {31, 152, 4}, {32, 156, 4},
    {33, 160, 4}, {34, 164, 4}, {35, 168, 4}, {37, 172, 4}, {36, 176, 8}, {38, 184, 8}, {39, 192, 8}, {40, 200, 8}};
static const struct field transform_fields[] = {{0, 0, 4}, {1, 4, 4}, {2, 8, 4}, {3, 12, 4}};
static const struct field preference_fields[] = {{0, 0, 4},  {3, 4, 4},  {1, 8, 8},   {5, 16, 4},  {6, 20, 4},  {7, 24, 4},
                                                 {8, 28, 4}, {9, 32, 4}, {12, 40, 8}, {13, 48, 8}, {14, 56, 8}, {15, 64, 8}};
static const struct field emulation_fields[] = {{0, 0, 4}, {1, 4, 4}, {2, 8, 4}, {3, 12, 4}, {4, 16, 4}, {5, 24, 8}};

static const struct shape {
    const struct field *fields;
    size_t count, bytes; // of the structure in the current header
} shapes[] = {
    [LAYOUT] = {layout_fields, sizeof layout_fields / sizeof *layout_fields, 14 * 8},
    [MATMUL] = {matmul_fields, sizeof matmul_fields / sizeof *matmul_fields, 32 * 8},
    [TRANSFORM] = {transform_fields, sizeof transform_fields / sizeof *transform_fields, 8 * 8},
    [PREFERENCE] = {preference_fields, sizeof preference_fields / sizeof *preference_fields, 12 * 8},
    [EMULATION] = {emulation_fields, sizeof emulation_fields / sizeof *emulation_fields, 8 * 8},
};

static const struct field *field_of(unsigned kind, int number) {
    for (size_t i = 0; i < shapes[kind].count; i++)
        if (shapes[kind].fields[i].number == number) return &shapes[kind].fields[i];
    return NULL;
}

static bool is_kind(const struct descriptor *descriptor, unsigned kind) { return descriptor != NULL && descriptor->kind == KIND(kind); }

// Structures are larger today than in older headers: nothing beyond the given size is written.
static int begin_descriptor(struct descriptor *descriptor, unsigned kind, size_t bytes) {
    enum { SMALLEST = 8 * 8 };
    if (descriptor == NULL || bytes < SMALLEST) return CUBLAS_INVALID_VALUE;
    memset(descriptor, 0, bytes < shapes[kind].bytes ? bytes : shapes[kind].bytes);
    descriptor->kind = KIND(kind);
    return 0;
}

static int create_descriptor(struct descriptor **descriptor, unsigned kind) {
    if (descriptor == NULL) return CUBLAS_INVALID_VALUE;
    struct descriptor *made = standin_new(0, shapes[kind].bytes);
    if (made == NULL) return CUBLAS_ALLOC_FAILED;
    *descriptor = made;
    return begin_descriptor(made, kind, shapes[kind].bytes);
}

static int destroy_descriptor(struct descriptor *descriptor, unsigned kind) {
    if (descriptor == NULL) return 0;
    if (!is_kind(descriptor, kind)) return CUBLAS_INVALID_VALUE;
    memset(descriptor, 0, sizeof(struct standin_object)); // as standin_destroy() expects: there are no kept values
    return standin_destroy(descriptor, 0) ? 0 : CUBLAS_INVALID_VALUE;
}

static int set_attribute(struct descriptor *descriptor, unsigned kind, int number, const void *value, size_t bytes) {
    const struct field *field = is_kind(descriptor, kind) ? field_of(kind, number) : NULL;
    if (field == NULL || value == NULL || bytes != field->bytes) return CUBLAS_INVALID_VALUE;
    memcpy(descriptor->values + field->offset, value, bytes);
    return 0;
}

// Gets an attribute; with bytes == 0, only its size.
static int get_attribute(const struct descriptor *descriptor, unsigned kind, int number, void *value, size_t bytes, size_t *written) {
    const struct field *field = is_kind(descriptor, kind) ? field_of(kind, number) : NULL;
    if (field == NULL || (bytes == 0 && written == NULL) || (bytes != 0 && (value == NULL || bytes < field->bytes)))
        return CUBLAS_INVALID_VALUE;
    if (bytes != 0) memcpy(value, descriptor->values + field->offset, field->bytes);
    if (written != NULL) *written = field->bytes;
    return 0;
}

static void put_attribute(struct descriptor *descriptor, unsigned kind, int number, uint64_t value) {
    const struct field *field = field_of(kind, number);
    memcpy(descriptor->values + field->offset, &value, field->bytes); // little-endian, as all systems with CUDA
}

#define ATTRIBUTES(name, kind)                                                                                                             \
    int cublasLt##name##SetAttribute(struct descriptor *descriptor, int number, const void *value, size_t bytes) {                         \
        return set_attribute(descriptor, kind, number, value, bytes);                                                                      \
    }                                                                                                                                      \
    int cublasLt##name##GetAttribute(const struct descriptor *descriptor, int number, void *value, size_t bytes, size_t *written) {        \
        return get_attribute(descriptor, kind, number, value, bytes, written);                                                             \
    }                                                                                                                                      \
    int cublasLt##name##Destroy(struct descriptor *descriptor) { return destroy_descriptor(descriptor, kind); }
ATTRIBUTES(MatrixLayout, LAYOUT)
ATTRIBUTES(MatmulDesc, MATMUL)
ATTRIBUTES(MatrixTransformDesc, TRANSFORM)
ATTRIBUTES(MatmulPreference, PREFERENCE)
ATTRIBUTES(EmulationDesc, EMULATION)

// --- creation -------------------------------------------------------------------------------------------------------
static int make_layout(struct descriptor *made, int type, uint64_t rows, uint64_t columns, int64_t step) {
    put_attribute(made, LAYOUT, 0, (uint64_t)type);
    put_attribute(made, LAYOUT, 2, rows);
    put_attribute(made, LAYOUT, 3, columns);
    put_attribute(made, LAYOUT, 4, (uint64_t)step);
    put_attribute(made, LAYOUT, 5, 1); // batch count
    return 0;
}

int cublasLtMatrixLayoutCreate(struct descriptor **made, int type, uint64_t rows, uint64_t columns, int64_t step) {
    const int status = create_descriptor(made, LAYOUT);
    return status != 0 ? status : make_layout(*made, type, rows, columns, step);
}

int cublasLtMatrixLayoutInit_internal(struct descriptor *made, size_t bytes, int type, uint64_t rows, uint64_t columns, int64_t step) {
    const int status = begin_descriptor(made, LAYOUT, bytes);
    return status != 0 ? status : make_layout(made, type, rows, columns, step);
}

static int make_grouped_layout(struct descriptor *made, int type, int groups, const void *rows, const void *columns, const void *steps) {
    put_attribute(made, LAYOUT, 0, (uint64_t)type);
    put_attribute(made, LAYOUT, 5, (uint64_t)groups);
    put_attribute(made, LAYOUT, 9, (uint64_t)(uintptr_t)rows);
    put_attribute(made, LAYOUT, 10, (uint64_t)(uintptr_t)columns);
    put_attribute(made, LAYOUT, 11, (uint64_t)(uintptr_t)steps);
    return 0;
}

int cublasLtGroupedMatrixLayoutCreate(struct descriptor **made, int type, int groups, const void *rows, const void *columns,
                                      const void *steps) {
    const int status = create_descriptor(made, LAYOUT);
    return status != 0 ? status : make_grouped_layout(*made, type, groups, rows, columns, steps);
}

int cublasLtGroupedMatrixLayoutInit_internal(struct descriptor *made, size_t bytes, int type, int groups, const void *rows,
                                             const void *columns, const void *steps) {
    if (bytes < shapes[LAYOUT].bytes) return CUBLAS_INVALID_VALUE; // older structures are too small for the arrays
    const int status = begin_descriptor(made, LAYOUT, bytes);
    return status != 0 ? status : make_grouped_layout(made, type, groups, rows, columns, steps);
}

static int make_product(struct descriptor *made, int compute_type, int scale_type) {
    put_attribute(made, MATMUL, 0, (uint64_t)compute_type);
    put_attribute(made, MATMUL, 1, (uint64_t)scale_type);
    put_attribute(made, MATMUL, 7, 1); // no epilogue
    return 0;
}

int cublasLtMatmulDescCreate(struct descriptor **made, int compute_type, int scale_type) {
    const int status = create_descriptor(made, MATMUL);
    return status != 0 ? status : make_product(*made, compute_type, scale_type);
}

int cublasLtMatmulDescInit_internal(struct descriptor *made, size_t bytes, int compute_type, int scale_type) {
    const int status = begin_descriptor(made, MATMUL, bytes);
    return status != 0 ? status : make_product(made, compute_type, scale_type);
}

int cublasLtMatrixTransformDescCreate(struct descriptor **made, int scale_type) {
    const int status = create_descriptor(made, TRANSFORM);
    if (status == 0) put_attribute(*made, TRANSFORM, 0, (uint64_t)scale_type);
    return status;
}

int cublasLtMatrixTransformDescInit_internal(struct descriptor *made, size_t bytes, int scale_type) {
    const int status = begin_descriptor(made, TRANSFORM, bytes);
    if (status == 0) put_attribute(made, TRANSFORM, 0, (uint64_t)scale_type);
    return status;
}

int cublasLtMatmulPreferenceCreate(struct descriptor **made) { return create_descriptor(made, PREFERENCE); }
int cublasLtMatmulPreferenceInit_internal(struct descriptor *made, size_t bytes) { return begin_descriptor(made, PREFERENCE, bytes); }
int cublasLtEmulationDescCreate(struct descriptor **made) { return create_descriptor(made, EMULATION); }
int cublasLtEmulationDescInit_internal(struct descriptor *made, size_t bytes) { return begin_descriptor(made, EMULATION, bytes); }

// --- algorithms ------------------------------------------------------------------------------------------------------------------------
enum { ALGORITHM_WORDS = 16, CONFIGURATIONS = 9 };
struct algorithm {
    uint32_t words[ALGORITHM_WORDS]; // settings by their number
};
struct heuristic {
    struct algorithm algorithm;
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

// Returns the only algorithm, with as much workspace as the program allows.
static void suggest_algorithm(struct heuristic *result, uint64_t most_workspace) {
    if (most_workspace != UINT64_MAX) standin_size_stake(STANDIN_CUBLASLT_MATMUL_WORKSPACE, most_workspace);
    const uint64_t wanted = standin_size(STANDIN_CUBLASLT_MATMUL_WORKSPACE, standin_library_version)->bytes;
    *result = (struct heuristic){.workspace_bytes = (size_t)(wanted <= most_workspace ? wanted : 0), .waves = 1.0f};
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, const struct descriptor *operation, const void *a, const void *b, const void *c,
                                   const void *d, const struct descriptor *preference, int wanted, struct heuristic *results, int *count) {
    uint64_t most_workspace = 0;
    if (handle == NULL) return CUBLAS_NOT_INITIALIZED;
    if (!is_kind(operation, MATMUL) || !is_kind(a, LAYOUT) || !is_kind(b, LAYOUT) || !is_kind(c, LAYOUT) || !is_kind(d, LAYOUT) ||
        wanted < 1 || results == NULL || count == NULL)
        return CUBLAS_INVALID_VALUE;
    if (preference != NULL) (void)get_attribute(preference, PREFERENCE, 1, &most_workspace, sizeof most_workspace, NULL);
    suggest_algorithm(&results[0], most_workspace);
    *count = 1;
    return 0;
}

int cublasLtMatmulAlgoCheck(void *handle, const struct descriptor *operation, const void *a, const void *b, const void *c, const void *d,
                            const struct algorithm *algorithm, struct heuristic *result) {
    (void)a, (void)b, (void)c, (void)d;
    if (handle == NULL) return CUBLAS_NOT_INITIALIZED;
    if (!is_kind(operation, MATMUL) || algorithm == NULL || result == NULL) return CUBLAS_INVALID_VALUE;
    suggest_algorithm(result, UINT64_MAX);
    result->algorithm = *algorithm;
    return 0;
}

int cublasLtMatmulAlgoGetIds(void *handle, int compute_type, int scale_type, int a, int b, int c, int d, int wanted, int *ids, int *count) {
    (void)compute_type, (void)scale_type, (void)a, (void)b, (void)c, (void)d;
    if (handle == NULL) return CUBLAS_NOT_INITIALIZED;
    if (wanted < 0 || (wanted > 0 && ids == NULL) || count == NULL) return CUBLAS_INVALID_VALUE;
    if (wanted > 0) ids[0] = 0;
    *count = wanted > 0 ? 1 : 0;
    return 0;
}

int cublasLtMatmulAlgoInit(void *handle, int compute_type, int scale_type, int a, int b, int c, int d, int id,
                           struct algorithm *algorithm) {
    (void)compute_type, (void)scale_type, (void)a, (void)b, (void)c, (void)d;
    if (handle == NULL) return CUBLAS_NOT_INITIALIZED;
    if (algorithm == NULL) return CUBLAS_INVALID_VALUE;
    *algorithm = (struct algorithm){{(uint32_t)id}};
    return 0;
}

// Two of the configuration values are 16 bits wide.
static size_t width_of_configuration(int number) { return number == 7 || number == 8 ? 2 : 4; }

int cublasLtMatmulAlgoConfigSetAttribute(struct algorithm *algorithm, int number, const void *value, size_t bytes) {
    if (algorithm == NULL || value == NULL || number < 0 || number >= CONFIGURATIONS || bytes != width_of_configuration(number))
        return CUBLAS_INVALID_VALUE;
    memcpy(&algorithm->words[number], value, bytes);
    return 0;
}

int cublasLtMatmulAlgoConfigGetAttribute(const struct algorithm *algorithm, int number, void *value, size_t bytes, size_t *written) {
    if (algorithm == NULL || number < 0 || number >= CONFIGURATIONS) return CUBLAS_INVALID_VALUE;
    const size_t width = width_of_configuration(number);
    if ((bytes == 0 && written == NULL) || (bytes != 0 && (value == NULL || bytes < width))) return CUBLAS_INVALID_VALUE;
    if (bytes != 0) memcpy(value, &algorithm->words[number], width);
    if (written != NULL) *written = width;
    return 0;
}

// Gets a capability of the algorithm: every yes-or-no capability is supported, and every list has one entry.
int cublasLtMatmulAlgoCapGetAttribute(const struct algorithm *algorithm, int number, void *value, size_t bytes, size_t *written) {
    static const struct {
        unsigned char bytes;
        int32_t value;
    } capabilities[] = {{4, 1},  {4, 7}, {4, 1}, {4, 1}, {4, 1},  {4, 1},  {4, 0},  {4, 0},  {0, 0}, {0, 0}, {4, 0}, {4, 3},
                        {4, -1}, {4, 0}, {4, 1}, {8, 1}, {4, 16}, {4, 16}, {4, 16}, {4, 16}, {0, 0}, {4, 1}, {4, 0}, {4, 0}};
    if (algorithm == NULL || number < 0 || (size_t)number >= sizeof capabilities / sizeof *capabilities) return CUBLAS_INVALID_VALUE;
    const size_t width = capabilities[number].bytes;
    const int64_t answer = capabilities[number].value;
    if (width == 0 || (bytes != 0 && (value == NULL || bytes < width))) return CUBLAS_INVALID_VALUE;
    if (bytes != 0) memcpy(value, &answer, width);
    if (written != NULL) *written = width;
    return 0;
}

// --- handles and products --------------------------------------------------------------------------------------------------------------
int cublasLtCreate(struct standin_handle **handle) { return standin_new_handle(&codes, handle, 0); }
int cublasLtDestroy(struct standin_handle *handle) { return standin_free_handle(&codes, handle); }

// ---- The memory that a product uses.

static int64_t number_of(const struct descriptor *descriptor, unsigned kind, int number) {
    uint64_t value = 0;
    size_t bytes = 0;
    if (get_attribute(descriptor, kind, number, &value, sizeof value, &bytes) != 0) return 0;
    return bytes == sizeof(int32_t) ? (int32_t)value : (int64_t)value; // little-endian
}

static const void *pointer_of(const struct descriptor *operation, int number) {
    return (const void *)(uintptr_t)number_of(operation, MATMUL, number);
}

// Returns the bytes of an element, 0 for types of four bits.
static size_t width_of_type(int64_t type) {
    enum { FIRST_INTEGER_OF_4_BITS = 16, LAST_INTEGER_OF_4_BITS = 19, FLOAT_OF_4_BITS = 33 };
    const bool small = (type >= FIRST_INTEGER_OF_4_BITS && type <= LAST_INTEGER_OF_4_BITS) || type == FLOAT_OF_4_BITS;
    return small ? 0 : standin_width((int)type);
}

static struct standin_operand operand_of(const struct descriptor *layout, const void *address, uint64_t effect) {
    enum { TYPE, ORDER, ROWS, COLUMNS, STEP, BATCH, STRIDE, PLANES };
    const int64_t order = number_of(layout, LAYOUT, ORDER);
    const bool by_rows = order == 1, plain = order <= 1 && number_of(layout, LAYOUT, PLANES) == 0;
    const int64_t batch = number_of(layout, LAYOUT, BATCH);
    const struct cublas_matrix matrix = {
        .address = address,
        .rows = number_of(layout, LAYOUT, by_rows ? COLUMNS : ROWS),
        .columns = number_of(layout, LAYOUT, by_rows ? ROWS : COLUMNS),
        .step = number_of(layout, LAYOUT, STEP),
        .stride = number_of(layout, LAYOUT, STRIDE),
        .width = plain ? width_of_type(number_of(layout, LAYOUT, TYPE)) : 0,
    };
    return standin_cublas_matrix(&matrix, batch < 1 ? 1 : batch, effect);
}

static struct standin_operand beginning_of(const void *address, bool used, uint64_t effect) {
    return (struct standin_operand){used ? address : NULL, 1, effect | STANDIN_OPEN};
}

// Bits of cublasLtEpilogue_t: how the epilogue uses the bias, and that it uses the auxiliary matrix. The backward pass reads that matrix.
enum { READS_BIAS = 4, WRITES_BIAS = 16 | 256 | 512, OF_BACKWARD = 8 | 64, USES_AUXILIARY = 128 };

struct matrices {
    const struct descriptor *a_layout, *b_layout, *c_layout, *d_layout;
    const void *a, *b, *c, *d;
    bool adds_c;
};

static size_t list_operands(const struct descriptor *operation, const struct matrices *matrices, struct standin_operand *list) {
    const int64_t epilogue = number_of(operation, MATMUL, 7);
    const bool writes_auxiliary = (epilogue & OF_BACKWARD) == 0;
    const struct standin_operand all[] = {
        operand_of(matrices->a_layout, matrices->a, STANDIN_READS),
        operand_of(matrices->b_layout, matrices->b, STANDIN_READS),
        operand_of(matrices->c_layout, matrices->adds_c ? matrices->c : NULL, STANDIN_READS),
        operand_of(matrices->d_layout, matrices->d, STANDIN_WRITES),
        beginning_of(pointer_of(operation, 8), (epilogue & READS_BIAS) != 0, STANDIN_READS),
        beginning_of(pointer_of(operation, 8), (epilogue & WRITES_BIAS) != 0, STANDIN_WRITES),
        beginning_of(pointer_of(operation, 11), (epilogue & USES_AUXILIARY) != 0, writes_auxiliary ? STANDIN_WRITES : STANDIN_READS),
        beginning_of(pointer_of(operation, 17), true, STANDIN_READS), // scales of A and B
        beginning_of(pointer_of(operation, 18), true, STANDIN_READS),
        beginning_of(pointer_of(operation, 21), true, STANDIN_WRITES), // the largest element of D
    };
    memcpy(list, all, sizeof all);
    return sizeof all / sizeof *all;
}

// Lists of matrices in device memory are not followed.
static bool has_lists(const struct matrices *matrices) {
    const struct descriptor *const layouts[] = {matrices->a_layout, matrices->b_layout, matrices->c_layout, matrices->d_layout};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (number_of(layouts[i], LAYOUT, 8) != 0 || number_of(layouts[i], LAYOUT, 9) != 0) return true;
    return false;
}

// Accepts a handle of cuBLAS, too, because it also is one of cuBLASLt.
int cublasLtMatmul(void *handle, const struct descriptor *operation, const void *alpha, const void *a, const void *a_layout, const void *b,
                   const void *b_layout, const void *beta, const void *c, const void *c_layout, void *d, const void *d_layout,
                   const struct algorithm *algorithm, void *workspace, size_t workspace_bytes, uint64_t stream) {
    (void)alpha, (void)algorithm;
    if (handle == NULL) return CUBLAS_NOT_INITIALIZED;
    if (!is_kind(operation, MATMUL) || !is_kind(a_layout, LAYOUT) || !is_kind(b_layout, LAYOUT) || !is_kind(c_layout, LAYOUT) ||
        !is_kind(d_layout, LAYOUT) || (workspace == NULL && workspace_bytes != 0))
        return CUBLAS_INVALID_VALUE;
    // The scalars are four bytes or more except with a scale type of half (2).
    const size_t scalar_bytes = number_of(operation, MATMUL, 1) == 2 ? 2 : 4;
    const bool in_host_memory = number_of(operation, MATMUL, 2) == 0;
    const struct matrices matrices = {
        a_layout, b_layout, c_layout, d_layout, a, b, c, d, !in_host_memory || !standin_cublas_is_zero(beta, scalar_bytes)};
    struct standin_operand operands[STANDIN_OPERANDS];
    const size_t count = has_lists(&matrices) ? 0 : list_operands(operation, &matrices, operands);
    return standin_work_on(stream, "cublasLtMatmul", operands, count) == 0 ? 0 : CUBLAS_EXECUTION_FAILED;
}

int cublasLtMatrixTransform(void *handle, const struct descriptor *operation, const void *alpha, const void *a, const void *a_layout,
                            const void *beta, const void *b, const void *b_layout, void *c, const void *c_layout, uint64_t stream) {
    (void)alpha, (void)a, (void)a_layout, (void)beta, (void)b, (void)b_layout, (void)c, (void)c_layout;
    if (handle == NULL) return CUBLAS_NOT_INITIALIZED;
    if (!is_kind(operation, TRANSFORM)) return CUBLAS_INVALID_VALUE;
    return standin_work(stream) == 0 ? 0 : CUBLAS_EXECUTION_FAILED;
}

// --- other functions -------------------------------------------------------------------------------------------------------------------
static size_t cache_capacity = 8192; // of the heuristics cache; documented default of CUBLASLT_HEURISTICS_CACHE_CAPACITY

size_t cublasLtGetVersion(void) { return (size_t)standin_library_version; }
size_t cublasLtGetCudartVersion(void) { return (size_t)standin_version_part(0) * 1000; }
unsigned cublasLtDisableCpuInstructionsSetMask(unsigned mask) { return (void)mask, 0; }
const char *cublasLtGetStatusName(int status) { return standin_cublas_name(status); }
const char *cublasLtGetStatusString(int status) { return standin_cublas_text(status); }

int cublasLtGetProperty(int part, int *value) {
    if (value == NULL || standin_version_part(part) < 0) return CUBLAS_INVALID_VALUE;
    *value = standin_version_part(part);
    return 0;
}

int cublasLtHeuristicsCacheGetCapacity(size_t *capacity) {
    if (capacity == NULL) return CUBLAS_INVALID_VALUE;
    *capacity = cache_capacity;
    return 0;
}

int cublasLtHeuristicsCacheSetCapacity(size_t capacity) {
    cache_capacity = capacity;
    return 0;
}

DONE(cublasLtLoggerForceDisable)
DONE(cublasLtLoggerOpenFile)
DONE(cublasLtLoggerSetCallback)
DONE(cublasLtLoggerSetFile)
DONE(cublasLtLoggerSetLevel)
DONE(cublasLtLoggerSetMask)
