// Tests the cuDNN stand-in: descriptors of the graph interface keep their attributes, one engine with its plan runs; shapes, weights of
// networks.
#include "standin_test.h"

enum { ENGINE = 2, CONFIGURATION = 3, HEURISTICS = 4, PLAN = 5, GRAPH = 15, PACK = 16, TENSOR = 17, MATMUL = 19 };
enum { INT64 = 3, DATA_TYPE = 1, DESCRIPTOR = 15, HANDLE = 0, POINTER = 6, HEURISTIC_MODE = 8 };

static void *new_descriptor(int type) {
    void *descriptor = NULL;
    EXPECT(CALL("cudnnBackendCreateDescriptor", (int, void **), type, &descriptor) == 0 && descriptor != NULL);
    return descriptor;
}

static int set(void *descriptor, int name, int type, int64_t count, const void *values) {
    return CALL("cudnnBackendSetAttribute", (void *, int, int, int64_t, const void *), descriptor, name, type, count, values);
}

static int get(void *descriptor, int name, int type, int64_t room, int64_t *count, void *values) {
    return CALL("cudnnBackendGetAttribute", (void *, int, int, int64_t, int64_t *, void *), descriptor, name, type, room, count, values);
}

static int finalize(void *descriptor) { return CALL("cudnnBackendFinalize", (void *), descriptor); }
static void destroy(void *descriptor) { EXPECT(CALL("cudnnBackendDestroyDescriptor", (void *), descriptor) == 0); }

static void *tensor_of(int64_t number) {
    const int64_t size[3] = {2, 3, number};
    const int type = 2;
    void *tensor = new_descriptor(TENSOR);
    EXPECT(set(tensor, 902, INT64, 3, size) == 0 && set(tensor, 901, DATA_TYPE, 1, &type) == 0 && set(tensor, 906, INT64, 1, &number) == 0);
    EXPECT(set(tensor, 902, 99, 3, size) == 2010);
    int64_t count = 0, told[4] = {0};
    EXPECT(get(tensor, 902, INT64, 4, &count, told) == 2004); // not final yet
    EXPECT(finalize(tensor) == 0 && set(tensor, 906, INT64, 1, &number) != 0);
    EXPECT(get(tensor, 902, INT64, 0, &count, NULL) == 0 && count == 3);
    EXPECT(get(tensor, 902, INT64, 4, &count, told) == 0 && count == 3 && told[2] == number && told[3] == 0);
    EXPECT(get(tensor, 902, DATA_TYPE, 4, &count, told) == 2010);
    EXPECT(get(tensor, 905, INT64, 1, &count, told) == 0 && count == 0);
    return tensor;
}

struct run {
    void *handle, *plan, *pack;
};

static void execute(void *argument) {
    const struct run *run = argument;
    EXPECT(CALL("cudnnBackendExecute", (void *, void *, void *), run->handle, run->plan, run->pack) == 0);
}

static void test_graph(void *handle) {
    void *tensors[3] = {tensor_of(11), tensor_of(12), tensor_of(13)}, *operation = new_descriptor(MATMUL), *graph = new_descriptor(GRAPH);
    int64_t count = -1, number = -1;
    const int mode = 0;
    for (int i = 0; i < 3; i++) EXPECT(set(operation, 1520 + i, DESCRIPTOR, 1, &tensors[i]) == 0);
    EXPECT(finalize(operation) == 0);
    EXPECT(finalize(graph) == 2000); // no operations
    EXPECT(set(graph, 800, HANDLE, 1, &handle) == 0 && set(graph, 801, DESCRIPTOR, 1, &operation) == 0 && finalize(graph) == 0);
    for (int i = 0; i < 3; i++) destroy(tensors[i]); // the operation keeps them
    destroy(operation);
    EXPECT(get(graph, 802, INT64, 1, &count, &number) == 0 && count == 1 && number == 1);
    void *heuristics = new_descriptor(HEURISTICS), *configuration = new_descriptor(CONFIGURATION), *engine = new_descriptor(ENGINE);
    EXPECT(set(heuristics, 201, DESCRIPTOR, 1, &graph) == 0 && set(heuristics, 200, HEURISTIC_MODE, 1, &mode) == 0 &&
           finalize(heuristics) == 0);
    EXPECT(get(heuristics, 202, DESCRIPTOR, 0, &count, NULL) == 0 && count == 1);
    EXPECT(get(heuristics, 202, DESCRIPTOR, 1, &count, &configuration) == 0 && count == 1);
    EXPECT(get(configuration, 300, DESCRIPTOR, 1, &count, &engine) == 0 && count == 1);
    number = -1;
    EXPECT(get(engine, 1301, INT64, 1, &count, &number) == 0 && number == 0);
    EXPECT(get(configuration, 302, DESCRIPTOR, 0, &count, NULL) == 0 && count == 0); // no knobs
    struct run run = {.handle = handle, .plan = new_descriptor(PLAN), .pack = new_descriptor(PACK)};
    EXPECT(finalize(run.plan) == 2000);
    EXPECT(set(run.plan, 400, HANDLE, 1, &handle) == 0 && set(run.plan, 401, DESCRIPTOR, 1, &configuration) == 0 &&
           finalize(run.plan) == 0);
    number = -1;
    EXPECT(get(run.plan, 402, INT64, 1, &count, &number) == 0 && count == 1 && number >= 0 && number < 1 << 24);
    EXPECT(CALL("cudnnBackendExecute", (void *, void *, void *), handle, run.plan, run.pack) == 2004);
    EXPECT(finalize(run.pack) == 0);
    const uint64_t stream = new_stream();
    EXPECT(CALL("cudnnSetStream", (void *, uint64_t), handle, stream) == 0);
    EXPECT(captured_nodes(stream, execute, &run) == 1);
    // There is no second engine.
    void *second = new_descriptor(ENGINE);
    const int64_t one = 1;
    EXPECT(set(second, 1300, DESCRIPTOR, 1, &graph) == 0 && set(second, 1301, INT64, 1, &one) == 0 && finalize(second) == 3000);
    void *all[] = {second, engine, configuration, heuristics, graph, run.plan, run.pack};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) destroy(all[i]);
}

static void test_shapes(void *handle) {
    void *input = NULL, *filter = NULL, *convolution = NULL;
    int size[4] = {0};
    size_t bytes = 99;
    EXPECT(CALL("cudnnCreateTensorDescriptor", (void **), &input) == 0 && CALL("cudnnCreateFilterDescriptor", (void **), &filter) == 0);
    EXPECT(CALL("cudnnCreateConvolutionDescriptor", (void **), &convolution) == 0);
    EXPECT(CALL("cudnnSetTensor4dDescriptor", (void *, int, int, int, int, int, int), input, 0, 2, 8, 3, 32, 32) == 0);
    EXPECT(CALL("cudnnGetTensorSizeInBytes", (void *, size_t *), input, &bytes) == 0 && bytes == 8 * 3 * 32 * 32 * 2);
    EXPECT(CALL("cudnnSetFilter4dDescriptor", (void *, int, int, int, int, int, int), filter, 2, 0, 16, 3, 5, 5) == 0);
    EXPECT(CALL("cudnnSetConvolution2dDescriptor", (void *, int, int, int, int, int, int, int, int), convolution, 1, 1, 2, 2, 1, 1, 1, 0) ==
           0);
    EXPECT(CALL("cudnnGetConvolutionNdForwardOutputDim", (void *, void *, void *, int, int *), convolution, input, filter, 4, size) == 0);
    EXPECT(size[0] == 8 && size[1] == 16 && size[2] == 15 && size[3] == 15);
    struct {
        int algorithm, status;
        float time;
        size_t workspace;
        int rest[5];
    } results[4];
    int count = 0;
    EXPECT(CALL("cudnnGetConvolutionForwardAlgorithm_v7", (void *, void *, void *, void *, void *, int, int *, void *), handle, input,
                filter, convolution, input, 4, &count, results) == 0);
    EXPECT(count == 1 && results[0].status == 0);
    EXPECT(CALL("cudnnGetConvolutionForwardWorkspaceSize", (void *, void *, void *, void *, void *, int, size_t *), handle, input, filter,
                convolution, input, 1, &bytes) == 0 &&
           bytes == results[0].workspace);
    void *activation = NULL;
    double coefficient = 0;
    int mode = 0, nan = 0;
    EXPECT(CALL("cudnnCreateActivationDescriptor", (void **), &activation) == 0);
    EXPECT(CALL("cudnnSetActivationDescriptor", (void *, int, int, double), activation, 3, 1, 0.5) == 0);
    EXPECT(CALL("cudnnGetActivationDescriptor", (void *, int *, int *, double *), activation, &mode, &nan, &coefficient) == 0);
    EXPECT(mode == 3 && nan == 1 && coefficient == 0.5);
    EXPECT(CALL("cudnnDestroyActivationDescriptor", (void *), activation) == 0);
}

// An LSTM of two layers, both directions, with both biases: PyTorch's sizes.
static void test_network(void *handle) {
    enum { IN = 16, HIDDEN = 32, LAYERS = 2, GATES = 4 };
    void *network = NULL, *matrix = NULL, *bias = NULL, *at = NULL, *bias_at = NULL;
    size_t bytes = 0;
    char weights[1] = {0};
    int type = 0, rank = 0, size[3] = {0}, stride[3] = {0};
    const size_t first = GATES * HIDDEN * (IN + HIDDEN), further = GATES * HIDDEN * (2 * HIDDEN + HIDDEN), biases = 2 * GATES * HIDDEN;
    EXPECT(CALL("cudnnCreateRNNDescriptor", (void **), &network) == 0 && CALL("cudnnCreateTensorDescriptor", (void **), &matrix) == 0 &&
           CALL("cudnnCreateTensorDescriptor", (void **), &bias) == 0);
    EXPECT(CALL("cudnnSetRNNDescriptor_v8", (void *, int, int, int, int, int, int, int, int, int, int, int, int, void *, unsigned), network,
                0, 2, 2, 1, 0, 0, 0, 0, IN, HIDDEN, HIDDEN, LAYERS, NULL, 0) == 0);
    EXPECT(CALL("cudnnGetRNNWeightSpaceSize", (void *, void *, size_t *), handle, network, &bytes) == 0);
    EXPECT(bytes == (2 * first + 2 * further + 4 * biases) * 4);
    EXPECT(CALL("cudnnGetRNNWeightParams", (void *, void *, int, size_t, void *, int, void *, void **, void *, void **), handle, network, 1,
                bytes, weights, 5, matrix, &at, bias, &bias_at) == 0);
    EXPECT((char *)at - weights == (ptrdiff_t)(first + GATES * HIDDEN * IN + HIDDEN * HIDDEN) * 4);
    EXPECT((char *)bias_at - weights == (ptrdiff_t)(2 * first + 2 * further + biases + 5 * HIDDEN) * 4);
    EXPECT(CALL("cudnnGetTensorNdDescriptor", (void *, int, int *, int *, int *, int *), matrix, 3, &type, &rank, size, stride) == 0);
    EXPECT(rank == 3 && size[0] == 1 && size[1] == HIDDEN && size[2] == HIDDEN);
}

int main(int count, char **arguments) {
    void *handle = NULL;
    EXPECT(count == 2);
    begin_driver();
    library = opened(arguments[1], "libcudnn.so.9");
    EXPECT(((size_t(*)(void))found_in(library, "cudnnGetVersion"))() / 10000 == 9);
    EXPECT(CALL("cudnnCreate", (void **), &handle) == 0 && handle != NULL);
    test_graph(handle);
    test_shapes(handle);
    test_network(handle);
    EXPECT(CALL("cudnnDestroy", (void *), handle) == 0);
    // One of its component libraries has the same function.
    library = opened(arguments[1], "libcudnn_graph.so.9");
    EXPECT(CALL("cudnnBackendCreateDescriptor", (int, void **), TENSOR, &handle) == 0);
    return 0;
}
