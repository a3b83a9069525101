#include "analyze/shared_sites.h"

#include "analyze/path_match.h"

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

// Those of a run's sites. *files is given to the caller (free()).
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

// The sites of a run get the paths that the last run has for their files.
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

// Where the sites of one function begin, by run; the last entry is the end.
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

// Whether every run that has sites of the function has one at that line.
static bool is_shared(const struct function_sites *function, int64_t line) {
    for (size_t run = 0; run < function->runs; run++) {
        if (function->first[run] != function->first[run + 1] && !has_line(function, run, line)) return false;
    }
    return true;
}

// What no line tells, by run: how many there are, and whether the numbers are alike.
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

// The line of the `rank`-th site that no line tells, in the last run that has sites.
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
