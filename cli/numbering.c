#define _DEFAULT_SOURCE // getentropy()
#include "numbering.h"

#include <stdlib.h>
#include <unistd.h>

enum { FIRST_SLOTS = 256 };

// The finalizer of splitmix64.
static uint64_t mix_bits(uint64_t value) {
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static size_t home_of(const struct numbering *numbering, uint64_t first, uint64_t second) {
    return (size_t)mix_bits(mix_bits(first ^ numbering->secret) ^ second) & (numbering->capacity - 1);
}

static struct numbering_slot *slot_of(const struct numbering *numbering, uint64_t first, uint64_t second) {
    size_t at = home_of(numbering, first, second);
    const struct numbering_slot *slots = numbering->slots;
    while (slots[at].after != 0 && (slots[at].first != first || slots[at].second != second)) at = (at + 1) & (numbering->capacity - 1);
    return &numbering->slots[at];
}

void numbering_release(struct numbering *numbering) {
    free(numbering->slots);
    *numbering = (struct numbering){.slots = NULL};
}

bool numbering_reserve(struct numbering *numbering) {
    if (2 * (numbering->count + 1) <= numbering->capacity) return true;
    struct numbering larger = *numbering;
    larger.capacity = numbering->capacity == 0 ? FIRST_SLOTS : 2 * numbering->capacity;
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (larger.slots == NULL) return false;
    // Without a source of randomness, use the address.
    if (larger.secret == 0 && getentropy(&larger.secret, sizeof larger.secret) != 0)
        larger.secret = mix_bits((uint64_t)(uintptr_t)larger.slots);
    for (size_t i = 0; i < numbering->capacity; i++) {
        const struct numbering_slot *old = &numbering->slots[i];
        if (old->after != 0) *slot_of(&larger, old->first, old->second) = *old;
    }
    free(numbering->slots);
    *numbering = larger;
    return true;
}

uint32_t numbering_get(const struct numbering *numbering, uint64_t first, uint64_t second) {
    return numbering->count == 0 ? NUMBERING_NONE : slot_of(numbering, first, second)->after - 1;
}

void numbering_set(struct numbering *numbering, uint64_t first, uint64_t second, uint32_t number) {
    struct numbering_slot *slot = slot_of(numbering, first, second);
    numbering->count += slot->after == 0;
    *slot = (struct numbering_slot){first, second, number + 1};
}

uint32_t numbering_take(struct numbering *numbering, uint64_t first, uint64_t second) {
    if (numbering->count == 0) return NUMBERING_NONE;
    struct numbering_slot *slots = numbering->slots;
    size_t gap = (size_t)(slot_of(numbering, first, second) - slots);
    const uint32_t number = slots[gap].after - 1;
    if (number == NUMBERING_NONE) return number;
    // Move each later pair of the run back into the gap, unless it would then be before its home slot.
    for (size_t at = (gap + 1) & (numbering->capacity - 1); slots[at].after != 0; at = (at + 1) & (numbering->capacity - 1)) {
        const size_t home = home_of(numbering, slots[at].first, slots[at].second);
        if (((at - home) & (numbering->capacity - 1)) < ((at - gap) & (numbering->capacity - 1))) continue;
        slots[gap] = slots[at];
        gap = at;
    }
    slots[gap].after = 0;
    numbering->count--;
    return number;
}
