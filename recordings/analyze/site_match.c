// Gives the call sites of several runs of one program common names.
#include "analyze/site_match.h"

// With more pairs of files, only equal paths match: no real program has that many different ones.
#define MOST_COMPARED ((uint64_t)1 << 24)

static bool is_separator(char c) { return c == '/' || c == '\\'; }

// Two files that may be the same, by the end that their paths share.
struct path_guess {
    uint32_t from, to;
    size_t from_above, to_above; // lengths of the differing folders above
    uint64_t folders;            // key for the pair of folders
    size_t votes;                // number of guesses with these folders
};

static int paths_by_name(const void *a, const void *b) { return strcmp(**(const char *const *const *)a, **(const char *const *const *)b); }

// Matches equal paths.
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

// Returns the number of bytes in the whole path components that both paths share at their ends; 0 if the file names differ.
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

// Hashes a path; both kinds of separator are equal.
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

static int by_run_and_key(const void *a, const void *b) {
    const struct vr_shared_site *x = a, *y = b;
    return x->run != y->run ? VR_ORDER(x->run, y->run) : VR_ORDER(x->key, y->key);
}

static int by_function_and_line(const void *a, const void *b) {
    const struct vr_shared_site *x = a, *y = b;
    const int files = strcmp(x->file, y->file), functions = files != 0 ? files : strcmp(x->function, y->function);
    if (functions != 0) return functions;
    return x->run != y->run ? VR_ORDER(x->run, y->run) : VR_ORDER(x->line, y->line);
}

// --- the sites of each run ---------------------------------------------------------------------------------------------------------------

static enum vram_status add_sites_run(struct vr_shared_sites *sites, size_t *capacity, struct vr_grouping *grouping, size_t run) {
    const struct vr_model *model = grouping->view->model;
    struct vr_map known = {0};
    enum vram_status status = VRAM_OK;
    for (size_t row = 0; row < grouping->lifetimes->count && status == VRAM_OK; row++) {
        uint64_t key = 0;
        status = vr_grouping_key(grouping, row, &key);
        if (status != VRAM_OK || vr_map_get(&known, key) != 0) continue;
        status = vr_map_set(&known, key, 1);
        if (status == VRAM_OK) status = vr_grow((void **)&sites->site, capacity, sites->count + 1, sizeof *sites->site);
        if (status != VRAM_OK) break;
        const bool frame = key != VR_GROUP_UNKNOWN;
        sites->site[sites->count++] = (struct vr_shared_site){
            .run = run,
            .key = key,
            .file = frame ? vr_model_string(model, model->frames.filename[key]) : "<no frames>",
            .function = frame ? vr_model_string(model, model->frames.name[key]) : "",
            .line = frame ? model->frames.line[key] : 0,
        };
    }
    vr_map_release(&known);
    return status;
}

// --- files -------------------------------------------------------------------------------------------------------------------------------

// Lists the files of a run's sites. The caller frees *files.
static enum vram_status files_of(const struct vr_shared_sites *sites, size_t run, const char ***files, size_t *count) {
    const char **all = malloc((sites->count + 1) * sizeof *all);
    *count = 0;
    if (all == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < sites->count; i++) {
        if (sites->site[i].run == run) all[(*count)++] = sites->site[i].file;
    }
    *files = all;
    return VRAM_OK;
}

// Gives the sites of a run the paths of the last run's files.
static enum vram_status share_with_last(struct vr_shared_sites *sites, size_t run, size_t last) {
    const char **ours = NULL, **theirs = NULL;
    size_t our_count = 0, their_count = 0;
    struct vr_renamed_paths renamed = {.count = 0};
    enum vram_status status = files_of(sites, run, &ours, &our_count);
    if (status == VRAM_OK) status = files_of(sites, last, &theirs, &their_count);
    if (status == VRAM_OK) status = vr_paths_rename(ours, our_count, theirs, their_count, &renamed);
    for (size_t i = 0; i < sites->count && status == VRAM_OK; i++) {
        if (sites->site[i].run == run) sites->site[i].file = vr_renamed_path(&renamed, sites->site[i].file);
    }
    vr_renamed_paths_release(&renamed);
    free(ours);
    free(theirs);
    return status;
}

static enum vram_status share_files(struct vr_shared_sites *sites, size_t runs) {
    for (size_t run = 0; run + 1 < runs; run++) VR_TRY(share_with_last(sites, run, runs - 1));
    return VRAM_OK;
}

// --- lines -------------------------------------------------------------------------------------------------------------------------------

static enum vram_status name_at(struct vr_shared_sites *sites, struct vr_shared_site *site, int64_t line) {
    if (site->key == VR_GROUP_UNKNOWN) {
        site->name = site->file;
        return VRAM_OK;
    }
    return vr_arena_printf(&sites->arena, &site->name, "%.4096s:%llu:%.4096s", site->file, (unsigned long long)line, site->function);
}

// The sites of one function, with the index of each run's first site; the last entry is the end.
struct function_sites {
    struct vr_shared_site *site;
    size_t first[VRAM_FORECAST_MOST + 1], runs;
};

static bool has_line(const struct function_sites *function, size_t run, int64_t line) {
    for (size_t i = function->first[run]; i < function->first[run + 1]; i++) {
        if (function->site[i].line == line) return true;
    }
    return false;
}

// Returns whether every run with sites of the function has one at that line.
static bool is_shared(const struct function_sites *function, int64_t line) {
    for (size_t run = 0; run < function->runs; run++) {
        if (function->first[run] != function->first[run + 1] && !has_line(function, run, line)) return false;
    }
    return true;
}

// The sites without a shared line: the most in any run, the number of runs that have such sites, and whether those runs all have the same
// number.
struct leftover {
    size_t most, holders;
    bool alike;
};

static struct leftover leftover_of(const struct function_sites *function) {
    struct leftover left = {.alike = true};
    for (size_t run = 0; run < function->runs; run++) {
        size_t count = 0;
        for (size_t i = function->first[run]; i < function->first[run + 1]; i++) count += !is_shared(function, function->site[i].line);
        if (function->first[run] == function->first[run + 1]) continue;
        left.alike = left.alike && (left.holders == 0 || count == left.most);
        left.holders += count != 0;
        left.most = count > left.most ? count : left.most;
    }
    return left;
}

// Returns the line of the `rank`-th site without a shared line, in the last run that has one.
static int64_t line_of_rank(const struct function_sites *function, size_t rank) {
    for (size_t run = function->runs; run-- > 0;) {
        size_t passed = 0;
        for (size_t i = function->first[run]; i < function->first[run + 1]; i++) {
            if (!is_shared(function, function->site[i].line) && passed++ == rank) return function->site[i].line;
        }
    }
    return 0;
}

static enum vram_status name_function(struct vr_shared_sites *sites, const struct function_sites *function) {
    const struct leftover left = leftover_of(function);
    for (size_t run = 0; run < function->runs; run++) {
        size_t rank = 0;
        for (size_t i = function->first[run]; i < function->first[run + 1]; i++) {
            struct vr_shared_site *site = &function->site[i];
            if (is_shared(function, site->line) || left.holders == 1)
                VR_TRY(name_at(sites, site, site->line));
            else if (left.alike)
                VR_TRY(name_at(sites, site, line_of_rank(function, rank++)));
            else
                VR_TRY(vr_arena_printf(&sites->arena, &site->name, "%.4096s:%.4096s", site->file, site->function));
        }
    }
    return VRAM_OK;
}

static bool same_function(const struct vr_shared_site *a, const struct vr_shared_site *b) {
    return strcmp(a->file, b->file) == 0 && strcmp(a->function, b->function) == 0;
}

static enum vram_status name_all(struct vr_shared_sites *sites, size_t runs) {
    for (size_t i = 0, end; i < sites->count; i = end) {
        struct function_sites function = {.site = &sites->site[i], .runs = runs};
        for (end = i; end < sites->count && same_function(&sites->site[end], &sites->site[i]); end++)
            function.first[sites->site[end].run + 1]++;
        for (size_t run = 0; run < runs; run++) function.first[run + 1] += function.first[run];
        VR_TRY(name_function(sites, &function));
    }
    return VRAM_OK;
}

static int by_shared_name(const void *a, const void *b) {
    const struct vr_shared_site *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void count_runs(struct vr_shared_sites *sites) {
    qsort(sites->site, sites->count, sizeof *sites->site, by_shared_name);
    for (size_t i = 0, end; i < sites->count; i = end) {
        uint32_t runs = 0;
        for (end = i; end < sites->count && strcmp(sites->site[end].name, sites->site[i].name) == 0; end++)
            runs |= 1u << sites->site[end].run;
        for (size_t k = i; k < end; k++) sites->site[k].runs = runs;
    }
    qsort(sites->site, sites->count, sizeof *sites->site, by_run_and_key);
}

enum vram_status vr_shared_sites_build(struct vr_grouping *const *groupings, size_t count, struct vr_shared_sites *sites) {
    struct vr_shared_sites made = {.site = NULL};
    size_t capacity = 0;
    enum vram_status status = VRAM_OK;
    assert(count <= VRAM_FORECAST_MOST);
    for (size_t run = 0; run < count && status == VRAM_OK; run++) status = add_sites_run(&made, &capacity, groupings[run], run);
    if (status == VRAM_OK && made.count != 0) status = share_files(&made, count);
    if (status == VRAM_OK && made.count != 0) {
        qsort(made.site, made.count, sizeof *made.site, by_function_and_line);
        status = name_all(&made, count);
    }
    if (status == VRAM_OK && made.count != 0) count_runs(&made);
    if (status == VRAM_OK)
        *sites = made;
    else
        vr_shared_sites_release(&made);
    return status;
}

void vr_shared_sites_release(struct vr_shared_sites *sites) {
    free(sites->site);
    vr_arena_release(&sites->arena);
    *sites = (struct vr_shared_sites){.site = NULL};
}

const struct vr_shared_site *vr_shared_site_of(const struct vr_shared_sites *sites, size_t run, uint64_t key) {
    const struct vr_shared_site wanted = {.run = run, .key = key};
    const struct vr_shared_site *site = bsearch(&wanted, sites->site, sites->count, sizeof *sites->site, by_run_and_key);
    assert(site != NULL);
    return site;
}
