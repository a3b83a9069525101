// Graph nodes whose parameters differ between the runtime and the driver: kernels by host address, copies by arrays and extents, and no
// contexts.
#include <string.h>

#include "runtime.h"

// cudaKernelNodeParams.
struct rt_kernel_node {
    const void *function;
    struct rt_dim3 grid, block;
    unsigned shared_bytes;
    void **arguments;
    void **extra;
};
// CUDA_KERNEL_NODE_PARAMS_v2.
struct driver_kernel_node {
    uint64_t function;
    struct rt_dim3 grid, block;
    unsigned shared_bytes;
    void **arguments;
    void **extra;
    uint64_t kernel, context;
};
// cudaMemsetParams, with the same layout as the driver's structure.
struct rt_memset_node {
    uint64_t address;
    size_t pitch;
    unsigned value, element_bytes;
    size_t width, rows;
};

static int current_context(const struct rt_driver *driver, uint64_t *context) {
    const int error = rt_begin(&driver);
    return error != RT_SUCCESS ? error : driver->ctx_get_current(context);
}

// --- kernels ----------------------------------------------------------------------------------------------------------------------------
static int kernel_node(const struct rt_kernel_node *wanted, struct driver_kernel_node *node) {
    if (wanted == NULL) return RT_INVALID_VALUE;
    *node = (struct driver_kernel_node){.grid = wanted->grid,
                                        .block = wanted->block,
                                        .shared_bytes = wanted->shared_bytes,
                                        .arguments = wanted->arguments,
                                        .extra = wanted->extra};
    return rt_kernel(wanted->function, &node->kernel);
}

static int add_kernel(const struct rt_driver *driver, uint64_t *made, uint64_t graph, const uint64_t *after, size_t count,
                      const struct rt_kernel_node *wanted) {
    struct driver_kernel_node node;
    const int error = kernel_node(wanted, &node);
    return error != RT_SUCCESS ? error : rt_kernel_error(driver->graph_add_kernel_node(made, graph, after, count, &node));
}

int cudaGraphAddKernelNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count, const struct rt_kernel_node *wanted) {
    RT_CALL(add_kernel(driver, node, graph, after, count, wanted));
}

static int get_kernel(const struct rt_driver *driver, uint64_t node, struct rt_kernel_node *answer) {
    struct driver_kernel_node found = {0};
    const int error = answer == NULL ? RT_INVALID_VALUE : driver->graph_kernel_node_get_params(node, &found);
    if (error != RT_SUCCESS) return error;
    *answer = (struct rt_kernel_node){.function = rt_kernel_address(found.kernel != 0 ? found.kernel : found.function),
                                      .grid = found.grid,
                                      .block = found.block,
                                      .shared_bytes = found.shared_bytes,
                                      .arguments = found.arguments,
                                      .extra = found.extra};
    return RT_SUCCESS;
}

int cudaGraphKernelNodeGetParams(uint64_t node, struct rt_kernel_node *answer) { RT_CALL(get_kernel(driver, node, answer)); }

// exec == 0: changes the graph itself.
static int set_kernel(const struct rt_driver *driver, uint64_t exec, uint64_t node, const struct rt_kernel_node *wanted) {
    struct driver_kernel_node answer;
    const int error = kernel_node(wanted, &answer);
    if (error != RT_SUCCESS) return error;
    return exec == 0 ? driver->graph_kernel_node_set_params(node, &answer) : driver->graph_exec_kernel_node_set_params(exec, node, &answer);
}

int cudaGraphKernelNodeSetParams(uint64_t node, const struct rt_kernel_node *wanted) { RT_CALL(set_kernel(driver, 0, node, wanted)); }
int cudaGraphExecKernelNodeSetParams(uint64_t exec, uint64_t node, const struct rt_kernel_node *wanted) {
    RT_CALL(exec == 0 ? RT_INVALID_VALUE : set_kernel(driver, exec, node, wanted));
}

// --- copies -----------------------------------------------------------------------------------------------------------------------------
static int add_copy(const struct rt_driver *driver, uint64_t *made, uint64_t graph, const uint64_t *after, size_t count,
                    const struct rt_copy *copy) {
    uint64_t context = 0;
    const int error = current_context(driver, &context);
    return error != RT_SUCCESS ? error : driver->graph_add_memcpy_node(made, graph, after, count, copy, context);
}

// exec == 0: changes the graph itself.
static int set_copy(const struct rt_driver *driver, uint64_t exec, uint64_t node, const struct rt_copy *copy) {
    uint64_t context = 0;
    if (exec == 0) return driver->graph_memcpy_node_set_params(node, copy);
    const int error = current_context(driver, &context);
    return error != RT_SUCCESS ? error : driver->graph_exec_memcpy_node_set_params(exec, node, copy, context);
}

static int get_copy(const struct rt_driver *driver, uint64_t node, struct rt_memcpy3d *answer) {
    struct rt_copy copy = {0};
    const int error = answer == NULL ? RT_INVALID_VALUE : driver->graph_memcpy_node_get_params(node, &copy);
    return error != RT_SUCCESS ? error : rt_copy_back(driver, &copy, answer);
}

#define WITH_COPY(made_by, call) ((rt_error_ = (made_by)) != RT_SUCCESS ? rt_error_ : (call))

int cudaGraphAddMemcpyNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count, const struct rt_memcpy3d *wanted) {
    struct rt_copy copy = {0};
    RT_CALL(WITH_COPY(rt_copy_of(driver, wanted, &copy), add_copy(driver, node, graph, after, count, &copy)));
}

int cudaGraphMemcpyNodeGetParams(uint64_t node, struct rt_memcpy3d *answer) { RT_CALL(get_copy(driver, node, answer)); }

int cudaGraphMemcpyNodeSetParams(uint64_t node, const struct rt_memcpy3d *wanted) {
    struct rt_copy copy = {0};
    RT_CALL(WITH_COPY(rt_copy_of(driver, wanted, &copy), set_copy(driver, 0, node, &copy)));
}

int cudaGraphExecMemcpyNodeSetParams(uint64_t exec, uint64_t node, const struct rt_memcpy3d *wanted) {
    struct rt_copy copy = {0};
    RT_CALL(WITH_COPY(exec == 0 ? RT_INVALID_VALUE : rt_copy_of(driver, wanted, &copy), set_copy(driver, exec, node, &copy)));
}

// Makes a copy between a variable and another place.
static int symbol_copy(const struct rt_driver *driver, struct rt_copy *copy, const void *symbol, const void *other, size_t bytes,
                       size_t offset, bool to_symbol) {
    uint64_t address = 0;
    size_t size = 0;
    const int error = rt_variable(driver, symbol, &address, &size);
    if (error != RT_SUCCESS) return error;
    if (offset > size || bytes > size - offset) return RT_INVALID_VALUE;
    const uint64_t here = rt_address(other);
    *copy = to_symbol ? rt_copy_line(address + offset, here, bytes) : rt_copy_line(here, address + offset, bytes);
    return RT_SUCCESS;
}

static int line_copy(struct rt_copy *copy, void *to, const void *from, size_t bytes, int kind) {
    enum { MOST_KIND = 4 };
    if (kind < 0 || kind > MOST_KIND) return RT_INVALID_MEMCPY_DIRECTION;
    *copy = rt_copy_line(rt_address(to), rt_address(from), bytes);
    return RT_SUCCESS;
}

// Defines three functions for each kind of copy: add a node, change a node of a graph, change a node of an executable graph.
#define NAMED_COPIES(suffix, parameters, made_by)                                                                                          \
    int cudaGraphAddMemcpyNode##suffix(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count, NAMED parameters) {            \
        struct rt_copy copy = {0};                                                                                                         \
        RT_CALL(WITH_COPY(made_by, add_copy(driver, node, graph, after, count, &copy)));                                                   \
    }                                                                                                                                      \
    int cudaGraphMemcpyNodeSetParams##suffix(uint64_t node, NAMED parameters) {                                                            \
        struct rt_copy copy = {0};                                                                                                         \
        RT_CALL(WITH_COPY(made_by, set_copy(driver, 0, node, &copy)));                                                                     \
    }                                                                                                                                      \
    int cudaGraphExecMemcpyNodeSetParams##suffix(uint64_t exec, uint64_t node, NAMED parameters) {                                         \
        struct rt_copy copy = {0};                                                                                                         \
        RT_CALL(WITH_COPY(exec == 0 ? RT_INVALID_VALUE : made_by, set_copy(driver, exec, node, &copy)));                                   \
    }
#define NAMED(...) __VA_ARGS__
NAMED_COPIES(1D, (void *to, const void *from, size_t bytes, int kind), line_copy(&copy, to, from, bytes, kind))
NAMED_COPIES(ToSymbol, (const void *symbol, const void *from, size_t bytes, size_t offset, int kind),
             ((void)kind, symbol_copy(driver, &copy, symbol, from, bytes, offset, true)))
NAMED_COPIES(FromSymbol, (void *to, const void *symbol, size_t bytes, size_t offset, int kind),
             ((void)kind, symbol_copy(driver, &copy, symbol, to, bytes, offset, false)))

// --- fills and conditions -------------------------------------------------------------------------------------------
int cudaGraphAddMemsetNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count, const struct rt_memset_node *wanted) {
    uint64_t context = 0;
    RT_CALL(WITH_COPY(current_context(driver, &context), driver->graph_add_memset_node(node, graph, after, count, wanted, context)));
}

int cudaGraphMemsetNodeGetParams(uint64_t node, struct rt_memset_node *answer) {
    RT_CALL(driver->graph_memset_node_get_params(node, answer));
}
int cudaGraphMemsetNodeSetParams(uint64_t node, const struct rt_memset_node *wanted) {
    RT_CALL(driver->graph_memset_node_set_params(node, wanted));
}

int cudaGraphExecMemsetNodeSetParams(uint64_t exec, uint64_t node, const struct rt_memset_node *wanted) {
    uint64_t context = 0;
    RT_CALL(WITH_COPY(current_context(driver, &context), driver->graph_exec_memset_node_set_params(exec, node, wanted, context)));
}

int cudaGraphConditionalHandleCreate(uint64_t *handle, uint64_t graph, unsigned value, unsigned flags) {
    uint64_t context = 0;
    RT_CALL(WITH_COPY(current_context(driver, &context), driver->graph_conditional_handle_create(handle, graph, context, value, flags)));
}

// execution == 0: the current context.
int cudaGraphConditionalHandleCreate_v2(uint64_t *handle, uint64_t graph, uint64_t execution, unsigned value, unsigned flags) {
    uint64_t context = 0;
    RT_CALL(WITH_COPY(execution == 0 ? current_context(driver, &context) : ((void)rt_is_green(driver, execution, &context), RT_SUCCESS),
                      driver->graph_conditional_handle_create(handle, graph, context, value, flags)));
}

// --- nodes of any kind ----------------------------------------------------------------------------------------------
enum { KERNEL = 0, MEMCPY = 1, MEMSET = 2, CONDITIONAL = 13 };

// cudaGraphNodeParams and CUgraphNodeParams have the same size, and are alike except for these kinds.
struct rt_node {
    int type;
    int reserved[3];
    union {
        uint64_t words[29];
        struct {
            struct rt_kernel_node node;
            uint64_t execution;
            int function_type;
        } kernel;
        struct driver_kernel_node driver_kernel;
        struct {
            int flags, reserved;
            uint64_t context;
            struct rt_memcpy3d copy;
        } memcpy;
        struct {
            int flags, reserved;
            uint64_t context;
            struct rt_copy copy;
        } driver_memcpy;
        struct {
            struct rt_memset_node node;
            uint64_t context;
        } memset;
        struct {
            uint64_t handle;
            int type;
            unsigned size;
            uint64_t *graphs; // set by the driver
            uint64_t context;
        } conditional;
    };
    uint64_t reserved2;
};
_Static_assert(sizeof(struct rt_node) == 256 && sizeof(struct rt_copy) == 200, "as large as CUDA's");

// Converts a node's parameters for the driver.
static int node_for_driver(const struct rt_driver *driver, const struct rt_node *wanted, struct rt_node *node) {
    if (wanted == NULL) return RT_INVALID_VALUE;
    *node = *wanted;
    switch (wanted->type) {
    case KERNEL: {
        struct driver_kernel_node kernel;
        const int error = kernel_node(&wanted->kernel.node, &kernel);
        memset(node->words, 0, sizeof node->words);
        node->driver_kernel = kernel;
        return error;
    }
    case MEMCPY: {
        struct rt_copy copy = {0};
        const int error = rt_copy_of(driver, &wanted->memcpy.copy, &copy);
        memset(node->words, 0, sizeof node->words);
        node->driver_memcpy.flags = wanted->memcpy.flags;
        node->driver_memcpy.copy = copy;
        return error != RT_SUCCESS ? error : current_context(driver, &node->driver_memcpy.context);
    }
    case MEMSET: return current_context(driver, &node->memset.context);
    case CONDITIONAL: return current_context(driver, &node->conditional.context);
    default: return RT_SUCCESS;
    }
}

// Converts a node's parameters from the driver.
static int node_from_driver(const struct rt_driver *driver, const struct rt_node *answer, struct rt_node *node) {
    *node = *answer;
    if (answer->type == KERNEL) {
        const struct driver_kernel_node *found = &answer->driver_kernel;
        memset(node->words, 0, sizeof node->words);
        node->kernel.node = (struct rt_kernel_node){.function = rt_kernel_address(found->kernel != 0 ? found->kernel : found->function),
                                                    .grid = found->grid,
                                                    .block = found->block,
                                                    .shared_bytes = found->shared_bytes,
                                                    .arguments = found->arguments,
                                                    .extra = found->extra};
    }
    if (answer->type != MEMCPY) return RT_SUCCESS;
    memset(node->words, 0, sizeof node->words);
    return rt_copy_back(driver, &answer->driver_memcpy.copy, &node->memcpy.copy);
}

struct new_node {
    uint64_t *made;
    uint64_t graph;
    const uint64_t *after;
    const void *edges;
    size_t count;
};

// Adds a node. Outputs in the parameters (graphs of a condition, the address of an allocation) are returned in `wanted`.
static int add_node(const struct rt_driver *driver, const struct new_node *place, struct rt_node *wanted) {
    struct rt_node node;
    int error = node_for_driver(driver, wanted, &node);
    if (error == RT_SUCCESS) error = driver->graph_add_node(place->made, place->graph, place->after, place->edges, place->count, &node);
    if (error == RT_SUCCESS && wanted->type != KERNEL && wanted->type != MEMCPY) *wanted = node;
    return rt_kernel_error(error);
}

int RT_SECOND(cudaGraphAddNode)(uint64_t *node, uint64_t graph, const uint64_t *after, const void *edges, size_t count,
                                struct rt_node *wanted) {
    RT_CALL(add_node(driver, &(const struct new_node){node, graph, after, edges, count}, wanted));
}

#if RT_MAJOR < 13
int cudaGraphAddNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count, struct rt_node *wanted) {
    RT_CALL(add_node(driver, &(const struct new_node){node, graph, after, NULL, count}, wanted));
}
#endif

int cudaGraphNodeSetParams(uint64_t node, const struct rt_node *wanted) {
    struct rt_node answer;
    RT_CALL(WITH_COPY(node_for_driver(driver, wanted, &answer), driver->graph_node_set_params(node, &answer)));
}

int cudaGraphExecNodeSetParams(uint64_t exec, uint64_t node, const struct rt_node *wanted) {
    struct rt_node answer;
    RT_CALL(WITH_COPY(node_for_driver(driver, wanted, &answer), driver->graph_exec_node_set_params(exec, node, &answer)));
}

int cudaGraphNodeGetParams(uint64_t node, struct rt_node *answer) {
    struct rt_node found;
    RT_CALL(WITH_COPY(answer == NULL ? RT_INVALID_VALUE : driver->graph_node_get_params(node, &found),
                      node_from_driver(driver, &found, answer)));
}
