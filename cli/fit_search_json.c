// fit_search_json.c: the answer of `vram fit --search` as one JSON object. Its lists of facts are those of docs/reference/json.md.
#include <stdio.h>

#include "base/json_rows.h"
#include "fit_search.h"
#include "output.h"

static void put_values(struct vr_json *json, const char *key, const struct fit_search *search, const struct fit_variant *variant) {
    char text[4096];
    vr_json_object(json, key);
    for (size_t i = 0; i < search->vary->count; i++) {
        const struct fit_varied *one = &search->vary->arguments[i];
        (void)snprintf(text, sizeof text, "%.*s", (int)one->lengths[variant->places[i]], one->texts[variant->places[i]]);
        vr_json_string(json, one->name, text);
    }
    vr_json_object_end(json);
}

static void put_words(struct vr_json *json, const char *key, char **words) {
    vr_json_array(json, key);
    for (; *words != NULL; words++) vr_json_string(json, NULL, *words);
    vr_json_array_end(json);
}

static void put_cards(struct vr_json *json, const char *key, uint64_t cards) {
    struct vram_sim_model model;
    vr_json_array(json, key);
    for (uint32_t i = 0; vram_sim_model_at(i, &model); i++)
        if ((cards >> i & 1) != 0) vr_json_string(json, NULL, model.key);
    vr_json_array_end(json);
}

#define FIT_POINT_FACTS(X)                                                                                                                 \
    X(MAP, "values", put_values(json, key, search, it->variant), ALWAYS, "values of the arguments of `--vary`, by name")                   \
    X(ARRAY, "command", put_words(json, key, it->variant->words), ALWAYS, "the program and its arguments")                                 \
    X(TEXT, "outcome", fit_outcome_names[it->outcome], ALWAYS, "`fits`, `does_not_fit`, `not_sure`, `failed` or `not_run`")                \
    X(ARRAY, "fits_on", put_cards(json, key, it->fits_on), ALWAYS, "the given cards that it fits on")                                      \
    X(NUMBER, "work", answer_json_decimal(json, key, it->work, 6), NULL_UNLESS(it->has_work), "its work; null: not known")                 \
    X(BOOL, "frontier", it->is_frontier, ALWAYS,                                                                                           \
      "no other variant that fits has as much work and needs less memory, or more work and no more memory")                                \
    X(U64, "need_bytes", it->need_bytes, NULL_UNLESS(known), "memory needed on a device like the one of the run; null: not known")         \
    X(BOOL, "ran_out", it->ran_out, ALWAYS, "memory ran out: it needs more than `need_bytes`")                                             \
    X(U64, "allocated_bytes", it->allocated_bytes, NULL_UNLESS(known && !it->ran_out), "allocated peak")                                   \
    X(U64, "reserved_bytes", it->reserved_bytes, NULL_UNLESS(known && !it->ran_out), "reserved peak")                                      \
    X(TEXT, "failure", it->failure, ALWAYS, "the failure as a sentence, or null")                                                          \
    X(BOOL, "same", it->same != NULL, ALWAYS, "another variant with the same command line ran for it")                                     \
    X(U64, "ranks", it->ranks, ALWAYS, "number of ranks")                                                                                  \
    X(U64, "ran", it->ranks_run, ALWAYS, "number of ranks that ran")                                                                       \
    X(BOOL, "checked", it->checked, ALWAYS, "ran again with all ranks")                                                                    \
    X(NUMBER, "seconds", answer_json_decimal(json, key, it->seconds, 1), ALWAYS, "time of its run")

static void put_point(struct vr_json *json, const struct fit_search *search, const struct fit_point *it) {
    const bool known = fit_point_is_known(it);
    vr_json_object(json, NULL);
    FIT_POINT_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

static void put_points(struct vr_json *json, const char *key, const struct fit_search *search) {
    vr_json_array(json, key);
    for (size_t i = 0; i < search->count; i++) put_point(json, search, &search->points[i]);
    vr_json_array_end(json);
}

#define FIT_BEST_FACTS(X)                                                                                                                  \
    X(TEXT, "card", card, ALWAYS, "key of a given card; null: the limit of `--memory`")                                                    \
    X(U64, "variant", (uint64_t)(it - search->points), NULL_UNLESS(it != NULL),                                                            \
      "place in `variants` of the variant with the most work, then the least memory; null: none fits")

static void put_best(struct vr_json *json, const char *key, const struct fit_search *search) {
    struct vram_sim_model model;
    vr_json_array(json, key);
    for (uint32_t i = 0; vram_sim_model_at(i, &model); i++) {
        const bool limited = search->limit_bytes != UINT64_MAX;
        const char *card = limited ? NULL : model.key;
        if (!limited && (search->asked >> i & 1) == 0) continue;
        const struct fit_point *it = fit_search_best(search, i);
        vr_json_object(json, NULL);
        FIT_BEST_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
        if (limited) break;
    }
    vr_json_array_end(json);
}

static void put_without_effect(struct vr_json *json, const char *key, const struct fit_search *search) {
    vr_json_array(json, key);
    for (size_t i = 0; i < search->vary->count; i++)
        if (fit_search_lacks_effect(search, i)) vr_json_string(json, NULL, search->vary->arguments[i].name);
    vr_json_array_end(json);
}

#define FIT_SEARCH_FACTS(X)                                                                                                                \
    X(ARRAY, "best", put_best(json, key, it), ALWAYS, "the best variant on each given card (see below)")                                   \
    X(BOOL, "complete", fit_search_count(it, FIT_NOT_RUN) == 0, ALWAYS, "all variants ran")                                                \
    X(ARRAY, "without_effect", put_without_effect(json, key, it), ALWAYS,                                                                  \
      "names of the arguments for which variants that differ only in them have the same peaks: perhaps the program does not use them")     \
    X(BOOL, "interrupted", it->interrupted, ALWAYS, "the search was ended by a signal")                                                    \
    X(NUMBER, "seconds", answer_json_decimal(json, key, it->seconds, 1), ALWAYS, "time of the search")                                     \
    X(TEXT, "work", it->work, ALWAYS, "`--work`, or null")                                                                                 \
    X(U64, "limit_bytes", it->limit_bytes, NULL_UNLESS(it->limit_bytes != UINT64_MAX), "`--memory`; null without that option")             \
    X(ARRAY, "variants", put_points(json, key, it), ALWAYS, "all variants, in the order in which they ran (see below)")

int fit_search_json(const struct fit_search *it, struct answers *answers) {
    struct answer_json answer;
    struct vr_json *json = answer_json_begin(&answer);
    vr_json_object(json, NULL);
    FIT_SEARCH_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
    return answer_json_end(&answer, answers);
}
