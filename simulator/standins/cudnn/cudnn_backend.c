// cuDNN's graph API: descriptors that store attributes, one engine for every graph of operations, and its plan.
//
// Descriptors are reference-counted: one that is set as an attribute lives as long as the descriptor it was set on. Queries return
// descriptors by value: the program passes an empty descriptor, which gets the attributes of the queried one.
#include <stdatomic.h>
#include <stdlib.h>

#include "cudnn.h"

enum { ENGINE = 2, ENGINE_CONFIGURATION = 3, HEURISTICS = 4, PLAN = 5, GRAPH = 15, VARIANT_PACK = 16, LAST_TYPE = 63 };
enum {
    HEURISTICS_GRAPH = 201,
    HEURISTICS_RESULTS = 202,
    CONFIGURATION_ENGINE = 300,
    CONFIGURATION_WORKSPACE = 303,
    CONFIGURATION_SHARED_MEMORY = 304,
    PLAN_CONFIGURATION = 401,
    PLAN_WORKSPACE = 402,
    PLAN_TEXT = 405,
    GRAPH_ENGINES = 802,
    TENSOR_TYPE = 901,
    TENSOR_SIZES = 902,
    TENSOR_STRIDES = 903,
    TENSOR_NUMBER = 906,
    TENSOR_IS_VIRTUAL = 907,
    PACK_NUMBERS = 1000,
    PACK_ADDRESSES = 1001,
    ENGINE_GRAPH = 1300,
    ENGINE_NUMBER = 1301,
    CACHE_IS_CACHED = 2401,
};
enum { TYPE_BOOLEAN = 2, TYPE_INT64 = 3, TYPE_CHARACTER = 24, TYPE_DESCRIPTOR = 15, TYPES = 33 };

#define DESCRIPTOR UINT64_C(0x6375646e6e62006b)

struct attribute {
    struct attribute *next;
    int name, type;
    int64_t count;
    max_align_t values[];
};

struct descriptor {
    uint64_t kind;
    atomic_int users; // references: the program, and descriptors that have it as an attribute
    int type;
    bool is_final;
    struct attribute *attributes;
};

static bool is_descriptor(const struct descriptor *descriptor) { return descriptor != NULL && descriptor->kind == DESCRIPTOR; }

// Returns the bytes of an element of a cudnnBackendAttributeType_t.
static size_t width_of(int type) {
    static const unsigned char widths[TYPES] = {8, 4, 1, 8, 4, 8, 8, 4, 4, 4,  4, 4, 4, 4, 4, 8, 4,
                                                4, 4, 4, 4, 4, 4, 4, 1, 4, 16, 4, 4, 4, 4, 4, 4};
    return type >= 0 && type < TYPES ? widths[type] : 0;
}

static void release_descriptor(struct descriptor *descriptor);

static void drop_attribute(struct attribute *attribute) {
    struct descriptor **held = (struct descriptor **)(void *)attribute->values;
    if (attribute->type == TYPE_DESCRIPTOR)
        for (int64_t i = 0; i < attribute->count; i++) release_descriptor(held[i]);
    free(attribute);
}

static void clear_descriptor(struct descriptor *descriptor) {
    while (descriptor->attributes != NULL) {
        struct attribute *next = descriptor->attributes->next;
        drop_attribute(descriptor->attributes);
        descriptor->attributes = next;
    }
}

static void release_descriptor(struct descriptor *descriptor) {
    if (!is_descriptor(descriptor) || atomic_fetch_sub(&descriptor->users, 1) != 1) return;
    clear_descriptor(descriptor);
    descriptor->kind = 0;
    free(descriptor);
}

static struct attribute **attribute_slot(struct descriptor *descriptor, int name) {
    struct attribute **place = &descriptor->attributes;
    while (*place != NULL && (*place)->name != name) place = &(*place)->next;
    return place;
}

static const struct attribute *attribute_of(const struct descriptor *descriptor, int name) {
    const struct attribute *attribute = descriptor->attributes;
    while (attribute != NULL && attribute->name != name) attribute = attribute->next;
    return attribute;
}

// Stores the new attribute before it drops the old one, because both may refer to the same descriptors.
static int put_backend_attribute(struct descriptor *descriptor, int name, int type, int64_t count, const void *values) {
    const size_t bytes = (size_t)count * width_of(type);
    struct attribute *made = malloc(sizeof *made + bytes);
    if (made == NULL) return CUDNN_ALLOC_FAILED;
    *made = (struct attribute){.name = name, .type = type, .count = count};
    if (bytes != 0) memcpy(made->values, values, bytes);
    struct descriptor **held = (struct descriptor **)(void *)made->values;
    if (type == TYPE_DESCRIPTOR)
        for (int64_t i = 0; i < count; i++)
            if (is_descriptor(held[i])) atomic_fetch_add(&held[i]->users, 1);
    struct attribute **place = attribute_slot(descriptor, name);
    struct attribute *old = *place;
    made->next = old == NULL ? NULL : old->next;
    *place = made;
    if (old != NULL) drop_attribute(old);
    return 0;
}

static int put_backend_number(struct descriptor *descriptor, int name, int64_t value) {
    return put_backend_attribute(descriptor, name, TYPE_INT64, 1, &value);
}

static int new_descriptor(int type, struct descriptor **result) {
    struct descriptor *made = calloc(1, sizeof *made);
    if (made == NULL) return CUDNN_ALLOC_FAILED;
    made->kind = DESCRIPTOR;
    made->type = type;
    atomic_init(&made->users, 1);
    *result = made;
    return 0;
}

int cudnnBackendCreateDescriptor(int type, struct descriptor **result) {
    if (result == NULL) return CUDNN_NULL_POINTER;
    if (type < 0 || type > LAST_TYPE) return CUDNN_NOT_SUPPORTED;
    return new_descriptor(type, result);
}

int cudnnBackendDestroyDescriptor(struct descriptor *descriptor) {
    if (descriptor != NULL && !is_descriptor(descriptor)) return CUDNN_BAD_PARAM;
    release_descriptor(descriptor);
    return 0;
}

int cudnnBackendInitialize(struct descriptor *descriptor) {
    if (!is_descriptor(descriptor)) return CUDNN_BAD_PARAM;
    clear_descriptor(descriptor);
    descriptor->is_final = false;
    return 0;
}

int cudnnBackendSetAttribute(struct descriptor *descriptor, int name, int type, int64_t count, const void *values) {
    if (!is_descriptor(descriptor)) return CUDNN_BAD_PARAM;
    if (descriptor->is_final) return CUDNN_NOT_INITIALIZED; // as documented
    if (width_of(type) == 0) return CUDNN_ATTRIBUTE_TYPE;
    if (count < 0 || count > INT32_MAX) return CUDNN_BAD_PARAM;
    if (values == NULL && count != 0) return CUDNN_NULL_POINTER;
    return put_backend_attribute(descriptor, name, type, count, values);
}

// --- finalization ---------------------------------------------------------------------------------------------------
// Attributes that a descriptor needs before it can be finalized.
static const struct {
    int type, name;
} needs[] = {{HEURISTICS, HEURISTICS_GRAPH}, {ENGINE, ENGINE_GRAPH}, {ENGINE_CONFIGURATION, CONFIGURATION_ENGINE}, {GRAPH, 801}};

// Refuses engine numbers other than 0. Programs use that to find the end of the list of engines.
static int check_engine(const struct descriptor *engine) {
    const struct attribute *number = attribute_of(engine, ENGINE_NUMBER);
    const int64_t *value = number == NULL ? NULL : (const void *)number->values;
    return value != NULL && *value != 0 ? CUDNN_NOT_SUPPORTED : 0;
}

int cudnnBackendFinalize(struct descriptor *descriptor) {
    if (!is_descriptor(descriptor)) return CUDNN_BAD_PARAM;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (needs[i].type == descriptor->type && attribute_of(descriptor, needs[i].name) == NULL) return CUDNN_BAD_PARAM;
    if (descriptor->type == ENGINE && check_engine(descriptor) != 0) return CUDNN_NOT_SUPPORTED;
    if (descriptor->type == PLAN && attribute_of(descriptor, PLAN_CONFIGURATION) == NULL && attribute_of(descriptor, PLAN_TEXT) == NULL)
        return CUDNN_BAD_PARAM;
    descriptor->is_final = true;
    return 0;
}

// --- queries --------------------------------------------------------------------------------------------------------
static int copy_into(struct descriptor *into, const struct descriptor *from) {
    if (!is_descriptor(into)) return CUDNN_NULL_POINTER;
    if (into->type != from->type) return CUDNN_DESCRIPTOR_TYPE;
    int status = 0;
    for (const struct attribute *attribute = from->attributes; attribute != NULL && status == 0; attribute = attribute->next)
        status = put_backend_attribute(into, attribute->name, attribute->type, attribute->count, attribute->values);
    if (status == 0) into->is_final = true;
    return status;
}

// Fills in the only configuration of a graph: engine 0 without knobs.
static int configure(struct descriptor *configuration, const struct descriptor *heuristics) {
    const struct attribute *graph = attribute_of(heuristics, HEURISTICS_GRAPH);
    struct descriptor *engine = NULL;
    if (!is_descriptor(configuration)) return CUDNN_NULL_POINTER;
    if (configuration->type != ENGINE_CONFIGURATION) return CUDNN_DESCRIPTOR_TYPE;
    int status = new_descriptor(ENGINE, &engine);
    if (status == 0) status = put_backend_attribute(engine, ENGINE_GRAPH, TYPE_DESCRIPTOR, graph->count, graph->values);
    if (status == 0) status = put_backend_number(engine, ENGINE_NUMBER, 0);
    if (status == 0) engine->is_final = true;
    if (status == 0) status = put_backend_attribute(configuration, CONFIGURATION_ENGINE, TYPE_DESCRIPTOR, 1, &engine);
    if (status == 0) configuration->is_final = true;
    release_descriptor(engine);
    return status;
}

struct request {
    int type;
    int64_t room; // capacity in elements
    int64_t *count;
    void *values;
};

static void answer_request(const struct request *request, int64_t count, const void *values, size_t width) {
    const int64_t copied = request->room < count ? request->room : count;
    if (request->count != NULL) *request->count = count;
    if (request->values != NULL && copied > 0) memcpy(request->values, values, (size_t)copied * width);
}

enum { DEEPEST = 8 };       // levels: a plan, its configuration, engine, graph, operations, tensors and others
enum { MOST_TENSORS = 64 }; // per graph; further tensors are not counted

struct operands {
    const struct descriptor *tensors[MOST_TENSORS];
    size_t count;
    uint64_t bytes;
};

// Adds a tensor's bytes. Virtual tensors between operations have no memory, and a tensor of several operations counts once.
static void add_tensor(struct operands *operands, const struct descriptor *tensor) {
    const struct attribute *sizes = attribute_of(tensor, TENSOR_SIZES), *type = attribute_of(tensor, TENSOR_TYPE);
    const struct attribute *is_virtual = attribute_of(tensor, TENSOR_IS_VIRTUAL);
    const int64_t *size = (const void *)sizes->values;
    const int *data_type = type == NULL || width_of(type->type) != sizeof(int) || type->count < 1 ? NULL : (const void *)type->values;
    uint64_t bytes = data_type == NULL ? sizeof(float) : standin_cudnn_width(*data_type);
    for (size_t i = 0; i < operands->count; i++)
        if (operands->tensors[i] == tensor) return;
    if (operands->count == MOST_TENSORS) return;
    char no_memory = 0;
    if (is_virtual != NULL && is_virtual->type == TYPE_BOOLEAN && is_virtual->count == 1) memcpy(&no_memory, is_virtual->values, 1);
    if (no_memory != 0) return;
    operands->tensors[operands->count++] = tensor;
    for (int64_t i = 0; i < sizes->count; i++) bytes *= size[i] > 0 ? (uint64_t)size[i] : 1;
    operands->bytes += bytes;
}

// Adds the tensors that a descriptor refers to, directly or indirectly.
static void add_operands(struct operands *operands, const struct descriptor *descriptor, int depth) {
    const struct attribute *sizes = attribute_of(descriptor, TENSOR_SIZES);
    if (sizes != NULL && sizes->type == TYPE_INT64) add_tensor(operands, descriptor);
    for (const struct attribute *attribute = descriptor->attributes; attribute != NULL && depth < DEEPEST; attribute = attribute->next) {
        struct descriptor *const *held = (const void *)attribute->values;
        if (attribute->type != TYPE_DESCRIPTOR) continue;
        for (int64_t i = 0; i < attribute->count; i++)
            if (is_descriptor(held[i])) add_operands(operands, held[i], depth + 1);
    }
}

// Returns the workspace of a plan. A real engine may need a copy of its operands: that is the upper bound reported here.
static size_t plan_workspace(const struct descriptor *plan) {
    struct operands operands = {.count = 0};
    add_operands(&operands, plan, 0);
    standin_size_stake(STANDIN_CUDNN_ENGINE_WORKSPACE, operands.bytes);
    return standin_cudnn_workspace();
}

// Answers queries for computed attributes: counts, sizes and texts. Returns false for an attribute that is stored.
static bool answer_computed(const struct descriptor *descriptor, int name, const struct request *request) {
    static const char text[] = "{\"engine\":0}";
    const int64_t one = 1, zero = 0;
    int64_t workspace;
    const bool no = false;
    switch (name) {
    case PLAN_WORKSPACE:
    case CONFIGURATION_WORKSPACE:
        workspace = (int64_t)plan_workspace(descriptor);
        answer_request(request, 1, &workspace, sizeof workspace);
        return true;
    case CONFIGURATION_SHARED_MEMORY: answer_request(request, 1, &zero, sizeof zero); return true;
    case GRAPH_ENGINES: answer_request(request, 1, &one, sizeof one); return true;
    case CACHE_IS_CACHED: answer_request(request, 1, &no, sizeof no); return true;
    case PLAN_TEXT:
        if (attribute_of(descriptor, name) != NULL) return false;
        answer_request(request, sizeof text, text, 1);
        return true;
    default: return false;
    }
}

static int get_descriptors(const struct descriptor *descriptor, int name, const struct request *request) {
    struct descriptor **results = request->values;
    if (name == HEURISTICS_RESULTS) {
        if (request->count != NULL) *request->count = 1;
        return results != NULL && request->room > 0 ? configure(results[0], descriptor) : 0;
    }
    const struct attribute *kept = attribute_of(descriptor, name);
    struct descriptor *const *held = kept == NULL ? NULL : (const void *)kept->values;
    const int64_t count = kept == NULL ? 0 : kept->count;
    if (request->count != NULL) *request->count = count;
    for (int64_t i = 0; results != NULL && i < count && i < request->room; i++) {
        const int status = is_descriptor(held[i]) ? copy_into(results[i], held[i]) : CUDNN_NULL_POINTER;
        if (status != 0) return status;
    }
    return 0;
}

int cudnnBackendGetAttribute(const struct descriptor *descriptor, int name, int type, int64_t room, int64_t *count, void *values) {
    const struct request request = {type, room, count, values};
    if (!is_descriptor(descriptor)) return CUDNN_BAD_PARAM;
    if (!descriptor->is_final) return CUDNN_NOT_FINALIZED;
    if (width_of(type) == 0) return CUDNN_ATTRIBUTE_TYPE;
    if (room < 0 || (room > 0 && values == NULL && count == NULL)) return CUDNN_BAD_PARAM;
    const struct attribute *kept = attribute_of(descriptor, name);
    if (kept != NULL && kept->type != type) return CUDNN_ATTRIBUTE_TYPE;
    if (type == TYPE_DESCRIPTOR) return get_descriptors(descriptor, name, &request);
    if (answer_computed(descriptor, name, &request)) return 0;
    answer_request(&request, kept == NULL ? 0 : kept->count, kept == NULL ? NULL : kept->values, width_of(type));
    return 0;
}

// --- the memory that an execution uses, for `vram check` ---------------------------------------------------------------
// Attributes of operations that are results (CUDNN_ATTR_OPERATION_*); all other tensors are read.
static const short results[] = {705,  710,  715,  753,  756,  773,  774,  788,  789,  790,  791,  792,  793,  1522, 1611,
                                1626, 1627, 1628, 1629, 1711, 1712, 1720, 1803, 1904, 1951, 2011, 2012, 2013, 2107, 2108,
                                2109, 2201, 2251, 2271, 2310, 2501, 2502, 2602, 2803, 2804, 2817, 2828, 2829, 2859, 2860,
                                2861, 2864, 2905, 2953, 3006, 3101, 3102, 3103, 3104, 3201, 3301, 3401, 3411};
// Statistics of a normalization: results in training, operands in inference.
enum { FIRST_STATISTIC = 2003, LAST_STATISTIC = 2004 };

static uint64_t effect_of(int attribute) {
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i] == attribute) return STANDIN_WRITES;
    return attribute >= FIRST_STATISTIC && attribute <= LAST_STATISTIC ? STANDIN_USES : STANDIN_READS;
}

// The address of each tensor in the variant pack, by its number.
struct pack {
    const int64_t *numbers;
    const void *const *addresses;
    int64_t count;
};

static struct pack pack_of(const struct descriptor *descriptor) {
    const struct attribute *numbers = attribute_of(descriptor, PACK_NUMBERS), *addresses = attribute_of(descriptor, PACK_ADDRESSES);
    if (numbers == NULL || addresses == NULL || numbers->type != TYPE_INT64 || width_of(addresses->type) != sizeof(void *))
        return (struct pack){.count = 0};
    return (struct pack){(const void *)numbers->values, (const void *)addresses->values,
                         numbers->count < addresses->count ? numbers->count : addresses->count};
}

static const void *address_of(const struct pack *pack, const struct descriptor *tensor) {
    const struct attribute *number = attribute_of(tensor, TENSOR_NUMBER);
    if (number == NULL || number->type != TYPE_INT64 || number->count != 1) return NULL;
    const int64_t *wanted = (const void *)number->values;
    for (int64_t i = 0; i < pack->count; i++)
        if (pack->numbers[i] == *wanted) return pack->addresses[i];
    return NULL;
}

// Returns the bytes of a tensor without gaps; 0 if it has gaps, or if its shape is not known.
static uint64_t dense_bytes(const struct descriptor *tensor) {
    const struct attribute *sizes = attribute_of(tensor, TENSOR_SIZES), *strides = attribute_of(tensor, TENSOR_STRIDES);
    const struct attribute *type = attribute_of(tensor, TENSOR_TYPE);
    if (sizes->type != TYPE_INT64 || strides == NULL || strides->type != TYPE_INT64 || strides->count != sizes->count) return 0;
    if (type == NULL || width_of(type->type) != sizeof(int) || type->count != 1) return 0;
    const int64_t *size = (const void *)sizes->values, *stride = (const void *)strides->values;
    const int *data_type = (const void *)type->values;
    int64_t last = 0, count = 1;
    for (int64_t i = 0; i < sizes->count; i++) {
        if (size[i] < 1 || stride[i] < 0 || size[i] > INT32_MAX || stride[i] > INT64_MAX / INT32_MAX / 16 || count > INT64_MAX / size[i])
            return 0;
        last += (size[i] - 1) * stride[i];
        count *= size[i];
    }
    return last + 1 == count ? (uint64_t)count * standin_cudnn_width(*data_type) : 0;
}

struct used {
    struct standin_operand operands[STANDIN_OPERANDS];
    size_t count;
};

static void add_used(struct used *used, const struct pack *pack, const struct descriptor *tensor, uint64_t effect) {
    const void *address = address_of(pack, tensor);
    if (address == NULL || used->count == STANDIN_OPERANDS) return;
    const uint64_t bytes = dense_bytes(tensor);
    used->operands[used->count++] = (struct standin_operand){address, bytes == 0 ? 1 : bytes, bytes == 0 ? effect | STANDIN_OPEN : effect};
}

// Adds the tensors of all operations that a plan refers to.
static void find_used(struct used *used, const struct pack *pack, const struct descriptor *descriptor, int depth) {
    for (const struct attribute *attribute = descriptor->attributes; attribute != NULL && depth < DEEPEST; attribute = attribute->next) {
        struct descriptor *const *held = (const void *)attribute->values;
        if (attribute->type != TYPE_DESCRIPTOR) continue;
        for (int64_t i = 0; i < attribute->count; i++) {
            if (!is_descriptor(held[i])) continue;
            if (attribute_of(held[i], TENSOR_SIZES) != NULL)
                add_used(used, pack, held[i], effect_of(attribute->name));
            else
                find_used(used, pack, held[i], depth + 1);
        }
    }
}

// --- execution ------------------------------------------------------------------------------------------------------
int cudnnBackendExecute(const struct standin_handle *handle, const struct descriptor *plan, const struct descriptor *pack) {
    if (!is_descriptor(plan) || plan->type != PLAN || !is_descriptor(pack) || pack->type != VARIANT_PACK) return CUDNN_BAD_PARAM;
    if (!plan->is_final || !pack->is_final) return CUDNN_NOT_FINALIZED;
    const struct pack addresses = pack_of(pack);
    struct used used = {.count = 0};
    find_used(&used, &addresses, plan, 0);
    return standin_call_on(&codes, handle, "cudnnBackendExecute", used.operands, used.count);
}

// Native CUDA graphs are optional for an engine; programs capture instead.
int cudnnBackendPopulateCudaGraph(void) { return CUDNN_NO_NATIVE_GRAPH; }
int cudnnBackendUpdateCudaGraph(void) { return CUDNN_NO_NATIVE_GRAPH; }

int cudnnGetExecutionPlanWorkspaceSize(const struct standin_handle *handle, const struct descriptor *plan, const struct descriptor *pack,
                                       size_t *bytes) {
    if (!is_descriptor(plan) || bytes == NULL) return CUDNN_BAD_PARAM;
    *bytes = plan_workspace(plan);
    return 0;
}
