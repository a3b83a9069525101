// live.c: a hash table with chains. Pieces are linked by index, so that the table can grow.
#include "live.h"

#include <stdlib.h>

#define FIRST_CAPACITY 256

atomic_uint_fast64_t pl_live_births;

struct pl_piece *pl_live_find(const struct pl_live *live, enum pl_space space, uint64_t key) {
    return pl_live_in(live, pl_live_chain(live, space, key), space, key);
}

static void link_piece(struct pl_live *live, uint32_t number) {
    struct pl_piece *piece = &live->pieces[number - 1];
    uint32_t *chain = pl_live_chain(live, (enum pl_space)piece->space, piece->key);
    piece->next = *chain;
    *chain = number;
}

// Doubles the table. There are at most twice as many buckets as pieces.
PL_SELDOM static bool grow(struct pl_live *live) {
    const size_t capacity = live->capacity == 0 ? FIRST_CAPACITY : live->capacity * 2;
    if (capacity > UINT32_MAX / 2) return false;
    uint32_t *chains = calloc(capacity, sizeof *chains);
    struct pl_piece *pieces = realloc(live->pieces, capacity * sizeof *pieces);
    if (pieces != NULL) live->pieces = pieces;
    if (chains == NULL || pieces == NULL) {
        free(chains);
        return false;
    }
    free(live->chains);
    live->chains = chains;
    live->capacity = capacity;
    live->mask = capacity - 1;
    for (uint32_t number = 1; number <= live->used; number++)
        if (live->pieces[number - 1].space != PL_SPACE_NONE) link_piece(live, number);
    return true;
}

struct pl_piece *pl_live_add(struct pl_live *live, enum pl_space space, uint64_t key) {
    // The table is only full if no piece is free, so grow() need not keep the free list.
    if (live->free_list == 0 && live->used == live->capacity && !grow(live)) return NULL;
    uint32_t number = live->free_list;
    if (number != 0)
        live->free_list = live->pieces[number - 1].next;
    else
        number = (uint32_t)++live->used;
    struct pl_piece *piece = &live->pieces[number - 1];
    *piece = (struct pl_piece){.key = key, .space = (uint16_t)space};
    link_piece(live, number);
    live->count++;
    return piece;
}

struct pl_piece *pl_live_next(struct pl_live *live, struct pl_piece *at) {
    size_t index = at == NULL ? 0 : (size_t)(at - live->pieces) + 1;
    while (index < live->used && live->pieces[index].space == PL_SPACE_NONE) index++;
    return index < live->used ? &live->pieces[index] : NULL;
}

void pl_live_clear(struct pl_live *live) {
    free(live->pieces);
    free(live->chains);
    *live = (struct pl_live){0};
}
