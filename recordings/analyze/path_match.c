#include "analyze/path_match.h"

// Sides of more files than this are compared by equal paths only: nothing real has so many that differ.
#define MOST_COMPARED ((uint64_t)1 << 24)

static bool is_separator(char c) { return c == '/' || c == '\\'; }

// Two files that may be the same: what stands before the part that their paths share, by length.
struct path_guess {
    uint32_t from, to;
    size_t from_above, to_above; // bytes of the folders above
    uint64_t folders;            // a number for the two folders
    size_t votes;                // guesses that have them
};

static int paths_by_name(const void *a, const void *b) { return strcmp(**(const char *const *const *)a, **(const char *const *const *)b); }

// Places of a side, by their path: for equal ones.
static enum vram_status match_equal(struct vr_paths from, struct vr_paths to, uint32_t *match, uint8_t *taken) {
    const char *const **sorted = malloc((to.count + 1) * sizeof *sorted);
    if (sorted == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t k = 0; k < to.count; k++) sorted[k] = &to.path[k];
    if (to.count != 0) qsort(sorted, to.count, sizeof *sorted, paths_by_name);
    for (size_t i = 0; i < from.count; i++) {
        const char *const *wanted = &from.path[i];
        const char *const **place = to.count == 0 ? NULL : bsearch(&wanted, sorted, to.count, sizeof *sorted, paths_by_name);
        match[i] = place == NULL ? VR_NO_PATH : (uint32_t)(*place - to.path);
        if (place != NULL) taken[match[i]] = 1;
    }
    free(sorted);
    return VRAM_OK;
}

// How many bytes at the end of both are whole components that are the same; 0 where the names of the files differ.
static size_t shared_end(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t alike = 0, whole = 0;
    while (alike < a_length && alike < b_length) {
        const char x = a[a_length - 1 - alike], y = b[b_length - 1 - alike];
        if (x != y && !(is_separator(x) && is_separator(y))) return whole;
        if (is_separator(x)) whole = alike;
        alike++;
    }
    const bool a_ends = alike == a_length || is_separator(a[a_length - 1 - alike]);
    const bool b_ends = alike == b_length || is_separator(b[b_length - 1 - alike]);
    return a_ends && b_ends ? alike : whole;
}

// A separator of either kind is the same.
static uint64_t hash_of_path(const char *bytes, size_t length) {
    uint64_t hash = length;
    for (size_t i = 0; i < length; i++) hash = vr_hash_step(hash, is_separator(bytes[i]) ? '/' : (unsigned char)bytes[i]);
    return vr_mix64(hash);
}

struct guesses {
    struct path_guess *guess;
    size_t count, capacity;
};

static enum vram_status guess_match(struct vr_paths from, struct vr_paths to, const uint32_t *match, const uint8_t *taken,
                                    struct guesses *guesses) {
    if ((uint64_t)from.count * to.count > MOST_COMPARED) return VRAM_OK;
    for (size_t i = 0; i < from.count; i++) {
        const size_t length = strlen(from.path[i]);
        for (size_t k = 0; k < to.count && match[i] == VR_NO_PATH; k++) {
            const size_t other = strlen(to.path[k]), shared = taken[k] != 0 ? 0 : shared_end(from.path[i], length, to.path[k], other);
            if (shared == 0) continue;
            VR_TRY(vr_grow((void **)&guesses->guess, &guesses->capacity, guesses->count + 1, sizeof *guesses->guess));
            guesses->guess[guesses->count++] = (struct path_guess){
                .from = (uint32_t)i,
                .to = (uint32_t)k,
                .from_above = length - shared,
                .to_above = other - shared,
                .folders = vr_mix64(hash_of_path(from.path[i], length - shared) + 3 * hash_of_path(to.path[k], other - shared)),
            };
        }
    }
    return VRAM_OK;
}

static int by_folders(const void *a, const void *b) {
    const struct path_guess *x = a, *y = b;
    return VR_ORDER(x->folders, y->folders);
}

static int most_votes_first(const void *a, const void *b) {
    const struct path_guess *x = a, *y = b;
    if (x->votes != y->votes) return VR_ORDER(y->votes, x->votes);
    if (x->from_above + x->to_above != y->from_above + y->to_above)
        return VR_ORDER(x->from_above + x->to_above, y->from_above + y->to_above);
    return x->from != y->from ? VR_ORDER(x->from, y->from) : VR_ORDER(x->to, y->to);
}

static void count_votes(struct guesses *guesses) {
    if (guesses->count != 0) qsort(guesses->guess, guesses->count, sizeof *guesses->guess, by_folders);
    for (size_t i = 0, end; i < guesses->count; i = end) {
        for (end = i; end < guesses->count && guesses->guess[end].folders == guesses->guess[i].folders;) end++;
        for (size_t k = i; k < end; k++) guesses->guess[k].votes = end - i;
    }
    if (guesses->count != 0) qsort(guesses->guess, guesses->count, sizeof *guesses->guess, most_votes_first);
}

enum vram_status vr_paths_match(struct vr_paths from, struct vr_paths to, uint32_t *match) {
    struct guesses guesses = {.guess = NULL};
    uint8_t *taken = calloc(to.count + 1, 1);
    if (taken == NULL) return VRAM_NO_HOST_MEMORY;
    enum vram_status status = match_equal(from, to, match, taken);
    if (status == VRAM_OK) status = guess_match(from, to, match, taken, &guesses);
    if (status == VRAM_OK) count_votes(&guesses);
    for (size_t i = 0; i < guesses.count && status == VRAM_OK; i++) {
        const struct path_guess *one = &guesses.guess[i];
        if (match[one->from] != VR_NO_PATH || taken[one->to] != 0) continue;
        match[one->from] = one->to;
        taken[one->to] = 1;
    }
    free(guesses.guess);
    free(taken);
    return status;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static size_t make_distinct(const char **path, size_t count) {
    size_t kept = 0;
    if (count != 0) qsort(path, count, sizeof *path, by_text);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || strcmp(path[kept - 1], path[i]) != 0) path[kept++] = path[i];
    }
    return kept;
}

enum vram_status vr_paths_rename(const char **from, size_t from_count, const char **to, size_t to_count, struct vr_renamed_paths *renamed) {
    const struct vr_paths ours = {.path = from, .count = make_distinct(from, from_count)};
    const struct vr_paths theirs = {.path = to, .count = make_distinct(to, to_count)};
    struct vr_renamed_paths made = {.count = ours.count};
    uint32_t *match = malloc((ours.count + 1) * sizeof *match);
    made.from = malloc((ours.count + 1) * sizeof *made.from);
    made.to = malloc((ours.count + 1) * sizeof *made.to);
    enum vram_status status = match == NULL || made.from == NULL || made.to == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) status = vr_paths_match(ours, theirs, match);
    for (size_t i = 0; i < ours.count && status == VRAM_OK; i++) {
        made.from[i] = from[i];
        made.to[i] = match[i] == VR_NO_PATH ? from[i] : to[match[i]];
    }
    free(match);
    if (status == VRAM_OK)
        *renamed = made;
    else
        vr_renamed_paths_release(&made);
    return status;
}

void vr_renamed_paths_release(struct vr_renamed_paths *renamed) {
    free(renamed->from);
    free(renamed->to);
    *renamed = (struct vr_renamed_paths){.from = NULL};
}

const char *vr_renamed_path(const struct vr_renamed_paths *renamed, const char *path) {
    const char *const *place = bsearch(&path, renamed->from, renamed->count, sizeof *renamed->from, by_text);
    assert(place != NULL);
    return renamed->to[place - renamed->from];
}
