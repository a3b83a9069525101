// play_compare.c: compares PyTorch's answers with ours, line by line.
//
// Differences specific to PyTorch (docs/differences.md lists each) are ignored as follows. Lists that differ in nothing else are equal "but
// for" them:
//   completions      frees that wait for several streams complete in the order of a hash of the streams: consecutive completions are
//                    compared in the order of their text, and only the current value of inactive_split, which sees pieces come and go,
//                    is compared; only if a list has `record`
//   pools            pools are released in the order of a hash of their ids: consecutive releases are compared pool by pool; only if a list
//                    has pools
//   oversize         blocks are counted out of oversize_* by the current max_split_size; only if a list has `conf`
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "play.h"

struct lines {
    char **line;
    size_t count, capacity, next;
    int64_t split[VR_WORLD_DEVICES][6]; // current inactive_split and inactive_split_bytes, each for all, small, large
};

// Splits the text into lines, in place.
static bool cut_lines(char *text, struct lines *lines) {
    for (char *rest = text; *rest != '\0';) {
        if (vr_grow((void **)&lines->line, &lines->capacity, lines->count + 1, sizeof *lines->line) != VRAM_OK) return false;
        lines->line[lines->count++] = rest;
        char *end = strchr(rest, '\n');
        if (end == NULL) break;
        *end = '\0';
        rest = end + 1;
    }
    return true;
}

static bool has(const struct lines *lines, const char *operation) {
    for (size_t i = 0; i < lines->count; i++)
        if (strncmp(lines->line[i], operation, strlen(operation)) == 0) return true;
    return false;
}

static int by_text(const void *left, const void *right) { return strcmp(*(char *const *)left, *(char *const *)right); }

// Returns the last word of an event if it is the pool, else the whole line.
static const char *pool_of(const char *line) {
    size_t words = 1;
    for (const char *rest = line; (rest = strchr(rest, ' ')) != NULL; rest++) words++;
    return words > 6 ? strrchr(line, ' ') : line;
}

static bool is_event(const char *line, const char *action) {
    if (strncmp(line, "event ", 6) != 0) return false;
    const char *word = line + 6 + strcspn(line + 6, " ") + 1;
    return strncmp(word, action, strlen(action)) == 0 && word[strlen(action)] == ' ';
}

static bool is_completion(const char *line) { return is_event(line, "free_completed"); }
static bool is_release(const char *line) { return is_event(line, "segment_free") || is_event(line, "segment_unmap"); }

static void order_completions(struct lines *lines) {
    for (size_t i = 0, end; i < lines->count; i = end + 1) {
        for (end = i; end < lines->count && is_completion(lines->line[end]);) end++;
        if (end > i + 1) qsort(lines->line + i, end - i, sizeof *lines->line, by_text);
    }
}

// Insertion sort, which keeps the order within a pool. Runs are short.
static void order_releases(struct lines *lines) {
    for (size_t i = 1; i < lines->count; i++) {
        if (!is_release(lines->line[i])) continue;
        char *line = lines->line[i];
        size_t place = i;
        while (place > 0 && is_release(lines->line[place - 1]) && strcmp(pool_of(lines->line[place - 1]), pool_of(line)) > 0) {
            lines->line[place] = lines->line[place - 1];
            place--;
        }
        lines->line[place] = line;
    }
}

// Notes a line of inactive_split. Returns false for another line.
static bool note_split(struct lines *lines, const char *line) {
    static const char *const names[] = {
        "inactive_split.all=",       "inactive_split.small_pool=",       "inactive_split.large_pool=",
        "inactive_split_bytes.all=", "inactive_split_bytes.small_pool=", "inactive_split_bytes.large_pool="};
    if (strncmp(line, "stat ", 5) != 0) return false;
    char *rest;
    const unsigned long device = strtoul(line + 5, &rest, 10);
    for (size_t i = 0; i < VR_COUNT_OF(names) && device < VR_WORLD_DEVICES; i++)
        if (strncmp(rest + 1, names[i], strlen(names[i])) == 0) {
            lines->split[device][i] = strtoll(rest + 1 + strlen(names[i]), NULL, 10);
            return true;
        }
    return false;
}

// The differences ignored in these two lists.
struct passed {
    bool completions, pools, oversize;
};

static bool is_oversize(const char *line) {
    return strncmp(line, "stat ", 5) == 0 && strncmp(line + 5 + strcspn(line + 5, " "), " oversize_", 10) == 0;
}

static void pass_over(struct lines *lines, const struct passed *passed) {
    while (lines->next < lines->count) {
        const char *line = lines->line[lines->next];
        if (!(passed->completions && note_split(lines, line)) && !(passed->oversize && is_oversize(line))) return;
        lines->next++;
    }
}

static bool same(const char *ours, const char *theirs) {
    if (ours == NULL || theirs == NULL) return ours == theirs;
    const char *a = strstr(ours, " = error "), *b = strstr(theirs, " = error ");
    if (a != NULL && b != NULL) return a - ours == b - theirs && strncmp(ours, theirs, (size_t)(a - ours)) == 0;
    return strcmp(ours, theirs) == 0;
}

static const char *line_at(const struct lines *lines, size_t i) { return i < lines->count ? lines->line[i] : NULL; }

static bool all_same(const struct lines *ours, const struct lines *theirs) {
    bool equal = ours->count == theirs->count;
    for (size_t i = 0; i < ours->count && equal; i++) equal = same(ours->line[i], theirs->line[i]);
    return equal;
}

static void say_difference(const char *path, const struct lines *ours, const struct lines *theirs, const char *what) {
    const char *left = line_at(ours, ours->next), *right = line_at(theirs, theirs->next);
    if (path == NULL) return;
    printf("%s: line %zu: PyTorch: %s%s\n%s: line %zu: ours:    %s%s\n", path, theirs->next + 1, right ? right : "(the end)", what, path,
           ours->next + 1, left ? left : "(the end)", what);
}

// Returns false if they differ, and prints where, if there is a path.
static bool same_but(const char *path, struct lines *ours, struct lines *theirs, const struct passed *passed) {
    for (;;) {
        pass_over(ours, passed);
        pass_over(theirs, passed);
        const char *left = line_at(ours, ours->next), *right = line_at(theirs, theirs->next);
        const bool picture_over = left == NULL || strncmp(left, "stat ", 5) != 0;
        if (picture_over && memcmp(ours->split, theirs->split, sizeof ours->split) != 0) {
            say_difference(path, ours, theirs, " (before: inactive_split)");
            return false;
        }
        if (!same(left, right)) {
            say_difference(path, ours, theirs, "");
            return false;
        }
        if (left == NULL) return true;
        ours->next++;
        theirs->next++;
    }
}

static struct lines copy_of(const struct lines *lines) {
    struct lines copy = {.count = lines->count};
    copy.line = malloc((lines->count + 1) * sizeof *copy.line);
    if (copy.line == NULL) abort();
    memcpy(copy.line, lines->line, lines->count * sizeof *copy.line);
    return copy;
}

// Returns whether the lists are equal if these differences are ignored.
static bool equal_but(const char *path, const struct lines *ours, const struct lines *theirs, const struct passed *passed, bool say) {
    struct lines left = copy_of(ours), right = copy_of(theirs);
    if (passed->completions) order_completions(&left), order_completions(&right);
    if (passed->pools) order_releases(&left), order_releases(&right);
    const bool equal = same_but(say ? path : NULL, &left, &right, passed);
    free(left.line);
    free(right.line);
    return equal;
}

// Prints which differences had to be ignored.
static void say_passed(const char *path, const struct lines *ours, const struct lines *theirs, const struct passed *most) {
    printf("%s: %zu lines equal, but for", path, theirs->count);
    const struct passed without[] = {
        {false, most->pools, most->oversize}, {most->completions, false, most->oversize}, {most->completions, most->pools, false}};
    static const char *const names[] = {"completions", "pools", "oversize"};
    for (size_t i = 0; i < VR_COUNT_OF(names); i++)
        if (!equal_but(path, ours, theirs, &without[i], false)) printf(" %s", names[i]);
    printf("\n");
}

bool play_compare(const char *path, char *ours_text, char *theirs_text) {
    struct lines ours = {0}, theirs = {0};
    if (!cut_lines(ours_text, &ours) || !cut_lines(theirs_text, &theirs)) abort();
    const struct passed most = {has(&theirs, "record "), has(&theirs, "pool ") || has(&theirs, "capture "), has(&theirs, "conf ")};
    bool equal = all_same(&ours, &theirs);
    if (equal)
        printf("%s: %zu lines equal\n", path, theirs.count);
    else if ((equal = equal_but(path, &ours, &theirs, &most, true)))
        say_passed(path, &ours, &theirs, &most);
    free(ours.line);
    free(theirs.line);
    return equal;
}
