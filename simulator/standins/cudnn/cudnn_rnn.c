// cuDNN's recurrent networks: offsets of matrices and biases in the weights, and sizes of weights and workspaces. Also dropout states.
#include "cudnn.h"

enum { CELL_LSTM = 2, CELL_GRU = 3, BIAS_NONE = 0, BIAS_INPUT = 1, BIAS_DOUBLE = 2, BIDIRECTIONAL = 1, SKIP_INPUT = 1, TRAINING = 1 };

struct rnn {
    struct standin_object object;
    int algorithm, cell, bias, direction, input_mode, type, math_precision, math_type;
    int input, hidden, projected, layers;
    void *dropout;
    unsigned flags;
};

struct rnn_data {
    struct standin_object object;
    int type, layout, steps, batch, vector;
    int lengths_kept;
    double padding;
};

#define NEEDS(condition)                                                                                                                   \
    if (!(condition)) return CUDNN_BAD_PARAM
#define NEW_OBJECT(name, structure)                                                                                                        \
    int name(structure **result) {                                                                                                         \
        structure *made = result == NULL ? NULL : standin_new(STANDIN_PLAIN_OBJECT, sizeof *made);                                         \
        if (made == NULL) return result == NULL ? CUDNN_NULL_POINTER : CUDNN_ALLOC_FAILED;                                                 \
        *result = made;                                                                                                                    \
        return 0;                                                                                                                          \
    }
NEW_OBJECT(cudnnCreateRNNDescriptor, struct rnn)
NEW_OBJECT(cudnnCreateRNNDataDescriptor, struct rnn_data)

int cudnnSetRNNDescriptor_v8(struct rnn *rnn, int algorithm, int cell, int bias, int direction, int input_mode, int type,
                             int math_precision, int math_type, int input, int hidden, int projected, int layers, void *dropout,
                             unsigned flags) {
    NEEDS(rnn != NULL && input > 0 && hidden > 0 && projected > 0 && projected <= hidden && layers > 0);
    NEEDS(cell >= 0 && cell <= CELL_GRU && bias >= 0 && bias <= 3 && direction >= 0 && direction <= BIDIRECTIONAL);
    const struct standin_object head = rnn->object;
    *rnn = (struct rnn){head,      algorithm, cell,   bias,      direction, input_mode, type, math_precision,
                        math_type, input,     hidden, projected, layers,    dropout,    flags};
    return 0;
}

int cudnnGetRNNDescriptor_v8(const struct rnn *rnn, int *algorithm, int *cell, int *bias, int *direction, int *input_mode, int *type,
                             int *math_precision, int *math_type, int *input, int *hidden, int *projected, int *layers, void **dropout,
                             unsigned *flags) {
    NEEDS(rnn != NULL);
    PUT(algorithm, rnn->algorithm);
    PUT(cell, rnn->cell);
    PUT(bias, rnn->bias);
    PUT(direction, rnn->direction);
    PUT(input_mode, rnn->input_mode);
    PUT(type, rnn->type);
    PUT(math_precision, rnn->math_precision);
    PUT(math_type, rnn->math_type);
    PUT(input, rnn->input);
    PUT(hidden, rnn->hidden);
    PUT(projected, rnn->projected);
    PUT(layers, rnn->layers);
    PUT(dropout, rnn->dropout);
    PUT(flags, rnn->flags);
    return 0;
}

int cudnnSetRNNDataDescriptor(struct rnn_data *data, int type, int layout, int steps, int batch, int vector, const int *lengths,
                              const void *padding) {
    NEEDS(data != NULL && steps > 0 && batch > 0 && vector > 0 && lengths != NULL);
    data->type = type;
    data->layout = layout;
    data->steps = steps;
    data->batch = batch;
    data->vector = vector;
    if (padding != NULL) memcpy(&data->padding, padding, standin_cudnn_width(type) <= 8 ? standin_cudnn_width(type) : 8);
    return standin_keep(data, 0, lengths, (size_t)batch * sizeof *lengths) ? 0 : CUDNN_ALLOC_FAILED;
}

int cudnnGetRNNDataDescriptor(const struct rnn_data *data, int *type, int *layout, int *steps, int *batch, int *vector, int room,
                              int *lengths, void *padding) {
    size_t bytes = 0;
    NEEDS(data != NULL && room >= 0);
    PUT(type, data->type);
    PUT(layout, data->layout);
    PUT(steps, data->steps);
    PUT(batch, data->batch);
    PUT(vector, data->vector);
    const void *kept = standin_kept(data, 0, &bytes);
    if (kept != NULL && lengths != NULL)
        memcpy(lengths, kept, bytes < (size_t)room * sizeof *lengths ? bytes : (size_t)room * sizeof *lengths);
    if (padding != NULL) memcpy(padding, &data->padding, standin_cudnn_width(data->type) <= 8 ? standin_cudnn_width(data->type) : 8);
    return 0;
}

// --- weights -----------------------------------------------------------------------------------------------------------------------------
// All matrices come before all biases. Per layer and direction: the gates' matrices for the input, those for the state, then the
// projection. A bidirectional layer is two pseudo layers.
static int gates_of(const struct rnn *rnn) { return rnn->cell == CELL_LSTM ? 4 : rnn->cell == CELL_GRU ? 3 : 1; }
static int directions_of(const struct rnn *rnn) { return rnn->direction == BIDIRECTIONAL ? 2 : 1; }
static bool is_projected(const struct rnn *rnn) { return rnn->projected != rnn->hidden; }

// Returns the columns of a pseudo layer's input matrix, or 0 if the first layer skips it.
static int64_t input_of(const struct rnn *rnn, int pseudo_layer) {
    if (pseudo_layer >= directions_of(rnn)) return (int64_t)rnn->projected * directions_of(rnn);
    return rnn->input_mode == SKIP_INPUT ? 0 : rnn->input;
}

static int64_t matrices_of(const struct rnn *rnn, int pseudo_layer) {
    const int64_t per_gate = (int64_t)rnn->hidden * (input_of(rnn, pseudo_layer) + rnn->projected);
    return gates_of(rnn) * per_gate + (is_projected(rnn) ? (int64_t)rnn->hidden * rnn->projected : 0);
}

static int64_t biases_of(const struct rnn *rnn) {
    const int sets = rnn->bias == BIAS_NONE ? 0 : rnn->bias == BIAS_DOUBLE ? 2 : 1;
    return (int64_t)sets * gates_of(rnn) * rnn->hidden;
}

static int64_t matrices_before(const struct rnn *rnn, int pseudo_layer) {
    int64_t elements = 0;
    for (int i = 0; i < pseudo_layer; i++) elements += matrices_of(rnn, i);
    return elements;
}

static int pseudo_layers_of(const struct rnn *rnn) { return rnn->layers * directions_of(rnn); }

int cudnnGetRNNWeightSpaceSize(const struct standin_handle *handle, const struct rnn *rnn, size_t *bytes) {
    NEEDS(rnn != NULL && rnn->hidden > 0 && bytes != NULL);
    const int layers = pseudo_layers_of(rnn);
    *bytes = (size_t)(matrices_before(rnn, layers) + layers * biases_of(rnn)) * standin_cudnn_width(rnn->type);
    return 0;
}

struct part {
    int64_t at, rows, columns; // in elements; rows 0: does not exist
};

static struct part matrix_part(const struct rnn *rnn, int layer, int number) {
    const int gates = gates_of(rnn);
    const int64_t begin = matrices_before(rnn, layer), wide = input_of(rnn, layer);
    if (number < gates) return (struct part){begin + number * wide * rnn->hidden, wide == 0 ? 0 : rnn->hidden, wide};
    const int64_t states = begin + gates * wide * rnn->hidden, square = (int64_t)rnn->hidden * rnn->projected;
    if (number < 2 * gates) return (struct part){states + (number - gates) * square, rnn->hidden, rnn->projected};
    return (struct part){states + gates * square, is_projected(rnn) ? rnn->projected : 0, rnn->hidden};
}

static struct part bias_part(const struct rnn *rnn, int layer, int number) {
    const int gates = gates_of(rnn);
    const bool of_input = number < gates;
    const bool is_there =
        number < 2 * gates && rnn->bias != BIAS_NONE && (rnn->bias == BIAS_DOUBLE || of_input == (rnn->bias == BIAS_INPUT));
    const int place = rnn->bias == BIAS_DOUBLE ? number : number % gates;
    const int64_t begin = matrices_before(rnn, pseudo_layers_of(rnn)) + layer * biases_of(rnn);
    return (struct part){begin + (int64_t)place * rnn->hidden, is_there ? rnn->hidden : 0, 1};
}

static void describe_part(const struct rnn *rnn, struct part part, char *weights, struct cudnn_shape *descriptor, void **address) {
    const bool is_there = part.rows > 0;
    if (descriptor != NULL && is_there) standin_cudnn_pack(descriptor, rnn->type, 3, (int[]){1, (int)part.rows, (int)part.columns});
    if (descriptor != NULL && !is_there) descriptor->rank = 0;
    if (address != NULL) *address = is_there ? weights + (size_t)part.at * standin_cudnn_width(rnn->type) : NULL;
}

int cudnnGetRNNWeightParams(const struct standin_handle *handle, const struct rnn *rnn, int layer, size_t bytes, void *weights, int number,
                            struct cudnn_shape *matrix, void **matrix_address, struct cudnn_shape *bias, void **bias_address) {
    NEEDS(rnn != NULL && rnn->hidden > 0 && layer >= 0 && layer < pseudo_layers_of(rnn));
    NEEDS(number >= 0 && number <= 2 * gates_of(rnn));
    describe_part(rnn, matrix_part(rnn, layer, number), weights, matrix, matrix_address);
    describe_part(rnn, bias_part(rnn, layer, number), weights, bias, bias_address);
    return 0;
}

// The real sizes are unknown. Guesses what a pass stores: the gates and states of every step and layer.
int cudnnGetRNNTempSpaceSizes(const struct standin_handle *handle, const struct rnn *rnn, int mode, const struct rnn_data *data,
                              size_t *workspace, size_t *reserve) {
    NEEDS(rnn != NULL && data != NULL);
    const size_t states = (size_t)data->steps * (size_t)data->batch * (size_t)rnn->hidden * (size_t)directions_of(rnn);
    const size_t pass = states * (size_t)(gates_of(rnn) + 2) * standin_cudnn_width(rnn->type);
    PUT(workspace, pass);
    PUT(reserve, mode == TRAINING ? pass * (size_t)rnn->layers : 0);
    return 0;
}

// --- dropout -----------------------------------------------------------------------------------------------------------------------------
struct dropout {
    struct standin_object object;
    float probability;
    void *states;
    uint64_t seed;
};
NEW_OBJECT(cudnnCreateDropoutDescriptor, struct dropout)

// One generator per thread that the device can hold.
int cudnnDropoutGetStatesSize(const struct standin_handle *handle, size_t *bytes) {
    enum { MULTIPROCESSORS = 16, THREADS = 2048 };
    const struct standin_driver *driver = standin_begin();
    int device = 0, count = 0;
    NEEDS(bytes != NULL);
    if (driver == NULL || driver->ctx_get_device(&device) != 0 || driver->device_get_attribute(&count, MULTIPROCESSORS, device) != 0)
        return CUDNN_NOT_INITIALIZED;
    *bytes = (size_t)(count < 1 ? 1 : count) * THREADS * (size_t)standin_size(STANDIN_CUDNN_DROPOUT_STATE, standin_library_version)->bytes;
    return 0;
}

int cudnnRestoreDropoutDescriptor(struct dropout *dropout, const struct standin_handle *handle, float probability, void *states,
                                  size_t bytes, uint64_t seed) {
    NEEDS(dropout != NULL && probability >= 0 && probability <= 1);
    dropout->probability = probability;
    dropout->states = states;
    dropout->seed = seed;
    return 0;
}

// Sets the descriptor and initializes the states.
int cudnnSetDropoutDescriptor(struct dropout *dropout, const struct standin_handle *handle, float probability, void *states, size_t bytes,
                              uint64_t seed) {
    const int status = cudnnRestoreDropoutDescriptor(dropout, handle, probability, states, bytes, seed);
    const struct standin_operand written = {states, bytes, STANDIN_WRITES};
    return status != 0 || states == NULL ? status : standin_call_on(&codes, handle, "cudnnSetDropoutDescriptor", &written, 1);
}

int cudnnGetDropoutDescriptor(const struct dropout *dropout, const struct standin_handle *handle, float *probability, void **states,
                              unsigned long long *seed) {
    NEEDS(dropout != NULL);
    PUT(probability, dropout->probability);
    PUT(states, dropout->states);
    PUT(seed, dropout->seed);
    return 0;
}
