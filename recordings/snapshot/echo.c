#include "snapshot/echo.h"

enum {
    MAX_BYTES = 1 << 20,
    TABLE_BYTES = VR_ECHO_RUNS * (sizeof(struct vr_echo_run) + sizeof(uint16_t)) + VR_ECHO_GUESSES * sizeof(uint16_t)
};

static size_t guess_slot(const struct vr_echo *echo) {
    return (size_t)(vr_mix64((uint64_t)echo->last << 32 | echo->last_but_one) % VR_ECHO_GUESSES);
}

void vr_echo_release(struct vr_echo *echo, struct vr_budget *budget) {
    if (echo->runs != NULL) budget->used_bytes -= TABLE_BYTES;
    budget->used_bytes -= echo->capacity;
    free(echo->bytes);
    free(echo->runs);
    free(echo->run_of);
    free(echo->guess);
    memset(echo, 0, sizeof *echo);
}

const struct vr_echo_run *vr_echo_guess(const struct vr_echo *echo, const unsigned char *bytes, const unsigned char *end) {
    if (echo->runs == NULL) return NULL;
    uint16_t guess = echo->guess[guess_slot(echo)];
    const struct vr_echo_run *run = guess == 0 ? NULL : &echo->runs[guess - 1];
    if (run == NULL || (size_t)(end - bytes) < run->length) return NULL;
    return memcmp(bytes, echo->bytes + run->offset, run->length) == 0 ? run : NULL;
}

static void remember_run(struct vr_echo *echo, uint32_t run) {
    echo->last_but_one = echo->last;
    echo->last = run;
}

void vr_echo_hit(struct vr_echo *echo, const struct vr_echo_run *run) {
    echo->hits++;
    remember_run(echo, (uint32_t)(run - echo->runs) + 1);
}

static bool allocate_tables(struct vr_echo *echo, struct vr_budget *budget) {
    if (echo->runs != NULL) return true;
    if (vr_budget_charge(budget, 1, TABLE_BYTES) != VRAM_OK) return false;
    echo->runs = malloc(VR_ECHO_RUNS * sizeof *echo->runs);
    echo->run_of = calloc(VR_ECHO_RUNS, sizeof *echo->run_of);
    echo->guess = calloc(VR_ECHO_GUESSES, sizeof *echo->guess);
    if (echo->runs != NULL && echo->run_of != NULL && echo->guess != NULL) return true;
    free(echo->runs);
    free(echo->run_of);
    free(echo->guess);
    echo->runs = NULL;
    echo->run_of = echo->guess = NULL;
    budget->used_bytes -= TABLE_BYTES;
    return false;
}

static uint16_t *run_slot(const struct vr_echo *echo, uint32_t stack) { return &echo->run_of[vr_mix64(stack) % VR_ECHO_RUNS]; }

// What comes after the last two is `run` from now on.
static void learn_next_run(struct vr_echo *echo, uint16_t run) {
    if (run != 0) echo->guess[guess_slot(echo)] = run;
    remember_run(echo, run);
}

bool vr_echo_miss(struct vr_echo *echo, const unsigned char *bytes, size_t length, uint32_t stack) {
    echo->misses++;
    if (echo->runs == NULL) return length <= MAX_BYTES;
    uint16_t known = *run_slot(echo, stack);
    const struct vr_echo_run *run = known == 0 ? NULL : &echo->runs[known - 1];
    bool same = run != NULL && run->stack == stack && run->length == length && memcmp(echo->bytes + run->offset, bytes, length) == 0;
    bool has_room = echo->run_count < VR_ECHO_RUNS && length <= MAX_BYTES - echo->used;
    if (!same && has_room) return true;
    learn_next_run(echo, same ? known : 0);
    return false;
}

void vr_echo_keep(struct vr_echo *echo, struct vr_budget *budget, const unsigned char *bytes, size_t length, uint32_t stack) {
    if (!allocate_tables(echo, budget)) return;
    void *kept = echo->bytes;
    enum vram_status status = vr_budget_grow(budget, &kept, &echo->capacity, echo->used + length, 1);
    echo->bytes = kept;
    if (status != VRAM_OK) return;
    memcpy(echo->bytes + echo->used, bytes, length);
    echo->runs[echo->run_count++] = (struct vr_echo_run){(uint32_t)echo->used, (uint32_t)length, stack};
    echo->used += length;
    *run_slot(echo, stack) = (uint16_t)echo->run_count;
    learn_next_run(echo, (uint16_t)echo->run_count);
}

void vr_echo_renew(struct vr_echo *echo, uint64_t generation) {
    if (echo->generation == generation) return;
    echo->generation = generation;
    echo->used = echo->run_count = echo->last = echo->last_but_one = 0;
    if (echo->runs == NULL) return;
    memset(echo->run_of, 0, VR_ECHO_RUNS * sizeof *echo->run_of);
    memset(echo->guess, 0, VR_ECHO_GUESSES * sizeof *echo->guess);
}
