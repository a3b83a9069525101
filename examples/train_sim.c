// train_sim.c: the memory of training a small transformer, on a simulated device.
//
// Weights, gradients and Adam's states; forward and backward passes with varying sequence lengths; temporary workspaces; gradients reduced
// and batches copied on streams of their own, which vram_record_stream() makes safe; an evaluation with long sequences, after which the
// cache is emptied. The history is written as a PyTorch memory snapshot:
//
//     train_sim > train.json && vram report train.json && vram replay --exact train.json
#include <stdlib.h>

#include "recorder.h"

#include <vram/sim.h>

enum { LAYERS = 8, HIDDEN = 1024, HEADS = 16, FEED = 4096, VOCABULARY = 32000, BATCH = 8, STEPS = 7, EVALUATE_AFTER = 4 };
enum { WEIGHTS = 6, SAVED = 9, HALF = 2, SINGLE = 4 };
enum { BUCKET_BYTES = 25 << 20, WORKSPACE_BYTES = 8519680 };

static const uint64_t weight_elements[WEIGHTS] = {
    3 * HIDDEN * HIDDEN, HIDDEN *HIDDEN, HIDDEN *FEED, FEED *HIDDEN, HIDDEN, HIDDEN,
};

struct layer {
    uint64_t weight[WEIGHTS];
    uint64_t gradient[WEIGHTS]; // 0 between steps
    uint64_t master[WEIGHTS];   // single precision
    uint64_t first[WEIGHTS];    // Adam's moments
    uint64_t second[WEIGHTS];
    uint64_t saved[SAVED]; // activations kept for backward
};

struct training {
    struct recorder *recorder;
    struct vram_driver *driver;
    uint64_t compute, copies, reductions; // streams
    struct layer layers[LAYERS];
    uint64_t embedding, embedding_gradient;
    uint64_t workspace;
    uint64_t bucket_bytes; // gradients waiting for reduction
    uint64_t random;
};

// Starts work on the device; the host continues.
static void launch(struct training *training, uint64_t stream, uint64_t work_us) {
    if (vram_sim_busy(training->driver, 0, stream, work_us * 1000) != VRAM_OK) exit(1);
    if (vram_sim_advance(training->driver, 8000) != VRAM_OK) exit(1);
}

static void release(struct training *training, uint64_t *tensor) {
    recorder_free(training->recorder, *tensor);
    *tensor = 0;
}

static uint64_t next_length(struct training *training) {
    training->random = training->random * 6364136223846793005u + 1442695040888963407u;
    return 192 + (training->random >> 33) % 14 * 64;
}

// --- set-up -----------------------------------------------------------------------------------------------------------------
static void load_layer(struct training *training, struct layer *layer) {
    for (int i = 0; i < WEIGHTS; i++) layer->weight[i] = TENSOR(training->recorder, weight_elements[i] * HALF, training->compute);
}

static void load_model(struct training *training) {
    struct recorder *recorder = training->recorder;
    training->embedding = TENSOR(recorder, (uint64_t)VOCABULARY * HIDDEN * HALF, training->compute);
    for (int i = 0; i < LAYERS; i++) CALL(recorder, load_layer(training, &training->layers[i]));
}

static void make_adam_states(struct training *training, struct layer *layer) {
    for (int i = 0; i < WEIGHTS; i++) {
        layer->master[i] = TENSOR(training->recorder, weight_elements[i] * SINGLE, training->compute);
        layer->first[i] = TENSOR(training->recorder, weight_elements[i] * SINGLE, training->compute);
        layer->second[i] = TENSOR(training->recorder, weight_elements[i] * SINGLE, training->compute);
    }
}

// --- forward ----------------------------------------------------------------------------------------------------------------
static void attention(struct training *training, struct layer *layer, uint64_t length, uint64_t *context) {
    struct recorder *recorder = training->recorder;
    const uint64_t scores = (uint64_t)BATCH * HEADS * length * length * HALF;
    uint64_t product = TENSOR(recorder, scores, training->compute);
    uint64_t masked = TENSOR(recorder, scores, training->compute);
    launch(training, training->compute, 30);
    release(training, &product);
    layer->saved[2] = TENSOR(recorder, scores, training->compute); // probabilities
    release(training, &masked);
    layer->saved[3] = TENSOR(recorder, scores / HALF, training->compute); // dropout mask
    *context = TENSOR(recorder, (uint64_t)BATCH * length * HIDDEN * HALF, training->compute);
    launch(training, training->compute, 40);
}

static void forward_layer(struct training *training, struct layer *layer, uint64_t length, uint64_t *hidden, bool keep) {
    struct recorder *recorder = training->recorder;
    const uint64_t tokens = BATCH * length, bytes = tokens * HIDDEN * HALF;
    uint64_t *saved = layer->saved;
    saved[0] = TENSOR(recorder, bytes, training->compute);     // normalized
    saved[1] = TENSOR(recorder, 3 * bytes, training->compute); // queries, keys, values
    CALL(recorder, attention(training, layer, length, &saved[4]));
    uint64_t projected = TENSOR(recorder, bytes, training->compute);
    saved[5] = TENSOR(recorder, bytes, training->compute); // after the first residual
    release(training, &projected);
    saved[6] = TENSOR(recorder, bytes, training->compute); // normalized
    saved[7] = TENSOR(recorder, tokens * FEED * HALF, training->compute);
    saved[8] = TENSOR(recorder, tokens * FEED * HALF, training->compute); // after the activation function
    uint64_t next = TENSOR(recorder, bytes, training->compute);
    launch(training, training->compute, 120);
    release(training, hidden);
    *hidden = next;
    for (int i = 0; i < SAVED && !keep; i++) release(training, &saved[i]);
}

static uint64_t copy_batch(struct training *training, uint64_t length) {
    uint64_t tokens = TENSOR(training->recorder, BATCH * length * sizeof(int64_t), training->copies);
    launch(training, training->copies, 15);
    recorder_record_stream(training->recorder, tokens, training->compute);
    return tokens;
}

static uint64_t forward(struct training *training, uint64_t tokens, uint64_t length, bool keep) {
    struct recorder *recorder = training->recorder;
    uint64_t hidden = TENSOR(recorder, BATCH * length * HIDDEN * HALF, training->compute);
    launch(training, training->compute, 20);
    release(training, &tokens);
    for (int i = 0; i < LAYERS; i++) CALL(recorder, forward_layer(training, &training->layers[i], length, &hidden, keep));
    return hidden;
}

static void loss(struct training *training, uint64_t length, uint64_t *hidden, bool keep) {
    struct recorder *recorder = training->recorder;
    uint64_t logits = TENSOR(recorder, (uint64_t)BATCH * length * VOCABULARY * HALF, training->compute);
    uint64_t single = TENSOR(recorder, (uint64_t)BATCH * length * VOCABULARY * SINGLE, training->compute);
    launch(training, training->compute, 200);
    uint64_t value = TENSOR(recorder, SINGLE, training->compute);
    release(training, &single);
    if (keep) {
        uint64_t gradient = TENSOR(recorder, (uint64_t)BATCH * length * VOCABULARY * HALF, training->compute);
        uint64_t next = TENSOR(recorder, BATCH * length * HIDDEN * HALF, training->compute);
        training->embedding_gradient = TENSOR(recorder, (uint64_t)VOCABULARY * HIDDEN * HALF, training->compute);
        launch(training, training->compute, 250);
        release(training, &gradient);
        release(training, hidden);
        *hidden = next;
    }
    release(training, &logits);
    release(training, &value);
}

// --- backward ---------------------------------------------------------------------------------------------------------------
// Reduces gradients in buckets on their own stream, while the backward pass continues.
static void reduce_bucket(struct training *training) {
    uint64_t bucket = TENSOR(training->recorder, training->bucket_bytes, training->compute);
    recorder_record_stream(training->recorder, bucket, training->reductions);
    launch(training, training->reductions, 400);
    release(training, &bucket);
    training->bucket_bytes = 0;
}

static void weight_gradient(struct training *training, struct layer *layer, int index) {
    layer->gradient[index] = TENSOR(training->recorder, weight_elements[index] * HALF, training->compute);
    launch(training, training->compute, 40);
    training->bucket_bytes += weight_elements[index] * HALF;
    if (training->bucket_bytes >= BUCKET_BYTES) CALL(training->recorder, reduce_bucket(training));
}

static void backward_attention(struct training *training, struct layer *layer, uint64_t length) {
    const uint64_t scores = (uint64_t)BATCH * HEADS * length * length * HALF;
    uint64_t gradient = TENSOR(training->recorder, scores, training->compute);
    uint64_t before = TENSOR(training->recorder, scores, training->compute);
    launch(training, training->compute, 80);
    release(training, &layer->saved[3]);
    release(training, &layer->saved[2]);
    release(training, &gradient);
    release(training, &before);
}

static void backward_layer(struct training *training, struct layer *layer, uint64_t length, uint64_t *hidden) {
    struct recorder *recorder = training->recorder;
    const uint64_t tokens = BATCH * length, bytes = tokens * HIDDEN * HALF;
    uint64_t wide = TENSOR(recorder, tokens * FEED * HALF, training->compute);
    CALL(recorder, weight_gradient(training, layer, 3));
    release(training, &layer->saved[8]);
    uint64_t wide_before = TENSOR(recorder, tokens * FEED * HALF, training->compute);
    release(training, &wide);
    release(training, &layer->saved[7]);
    uint64_t narrow = TENSOR(recorder, bytes, training->compute);
    CALL(recorder, weight_gradient(training, layer, 2));
    release(training, &wide_before);
    CALL(recorder, weight_gradient(training, layer, 5));
    release(training, &layer->saved[6]);
    release(training, &layer->saved[5]);
    CALL(recorder, weight_gradient(training, layer, 1));
    CALL(recorder, backward_attention(training, layer, length));
    release(training, &layer->saved[4]);
    uint64_t triple = TENSOR(recorder, 3 * bytes, training->compute);
    CALL(recorder, weight_gradient(training, layer, 0));
    release(training, &layer->saved[1]);
    release(training, &triple);
    CALL(recorder, weight_gradient(training, layer, 4));
    release(training, &layer->saved[0]);
    release(training, hidden);
    *hidden = narrow;
}

static void backward(struct training *training, uint64_t length, uint64_t *hidden) {
    for (int i = LAYERS; i-- > 0;) CALL(training->recorder, backward_layer(training, &training->layers[i], length, hidden));
    if (training->bucket_bytes > 0) CALL(training->recorder, reduce_bucket(training));
    release(training, hidden);
}

// --- steps ------------------------------------------------------------------------------------------------------------------
static void optimizer_step(struct training *training, bool first_step) {
    for (int i = 0; i < LAYERS; i++) {
        struct layer *layer = &training->layers[i];
        if (first_step) CALL(training->recorder, make_adam_states(training, layer));
        for (int w = 0; w < WEIGHTS; w++) {
            uint64_t update = TENSOR(training->recorder, weight_elements[w] * SINGLE, training->compute);
            launch(training, training->compute, 25);
            release(training, &update);
        }
    }
    for (int i = 0; i < LAYERS; i++) {
        for (int w = 0; w < WEIGHTS; w++) release(training, &training->layers[i].gradient[w]);
    }
    release(training, &training->embedding_gradient);
}

static void train_step(struct training *training, int step) {
    struct recorder *recorder = training->recorder;
    const uint64_t length = next_length(training);
    uint64_t tokens = 0, hidden = 0;
    CALL(recorder, tokens = copy_batch(training, length));
    CALL(recorder, hidden = forward(training, tokens, length, true));
    CALL(recorder, loss(training, length, &hidden, true));
    CALL(recorder, backward(training, length, &hidden));
    CALL(recorder, optimizer_step(training, step == 0));
}

static void evaluate(struct training *training) {
    struct recorder *recorder = training->recorder;
    const uint64_t length = 1536;
    uint64_t tokens = 0, hidden = 0;
    CALL(recorder, tokens = copy_batch(training, length));
    CALL(recorder, hidden = forward(training, tokens, length, false));
    CALL(recorder, loss(training, length, &hidden, false));
    release(training, &hidden);
    CALL(recorder, recorder_empty_cache(recorder));
}

static void train(struct training *training) {
    struct recorder *recorder = training->recorder;
    CALL(recorder, load_model(training));
    training->workspace = TENSOR(recorder, WORKSPACE_BYTES, training->compute);
    for (int step = 0; step < STEPS; step++) {
        CALL(recorder, train_step(training, step));
        if (step + 1 == EVALUATE_AFTER) CALL(recorder, evaluate(training));
    }
}

int main(void) {
    struct vram_driver *driver = NULL;
    struct vram_allocator *allocator = NULL;
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = (uint64_t)40 << 30}, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver, .conf = ""}, &allocator, NULL) != VRAM_OK) return 1;
    if (vram_set_memory_fraction(allocator, 0, 1.0) != VRAM_OK) return 1; // sets the device up, so that streams can be created
    struct training training = {.recorder = recorder_create(allocator, driver), .driver = driver, .random = 1};
    if (vram_sim_stream_create(driver, 0, &training.copies) != VRAM_OK) return 1;
    if (vram_sim_stream_create(driver, 0, &training.reductions) != VRAM_OK) return 1;
    CALL(training.recorder, train(&training));
    recorder_write(training.recorder, stdout);
    recorder_destroy(training.recorder);
    vram_destroy(allocator);
    vram_driver_destroy(driver);
    return 0;
}
