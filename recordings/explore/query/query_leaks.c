// `leaks`: what piles up or grows from step to step. `churn`: what is made and freed within every step.
#include "explore/query/step_search.h"
#include "model/recording.h"
#include "present/group_names.h"
#include "present/leak_words.h"

enum { MOST_STEP_EVENTS = 4096 };

static void put_leak_steps(const struct vr_query *query, const struct vr_pattern_search *search) {
    struct vr_json *json = &query->answer->json;
    const struct vr_steps *steps = &search->steps;
    const struct vr_model *model = vr_recording_model(search->selection.recording->recording);
    struct vr_text words = {0};
    vr_leak_steps_text(model, steps, &words);
    vr_json_string(json, "steps_text", vr_text_string(&words));
    vr_text_release(&words);
    vr_json_string(json, "source", vr_step_source_word(steps->source));
    vr_json_bool(json, "sure", !steps->unsure);
    if (steps->name != 0) vr_json_string(json, "step_name", vr_model_string(model, steps->name));
    vr_json_u64(json, "steps", steps->count);
    const size_t column = vr_answer_column(query->answer, "step_event", VR_F64);
    for (size_t i = 0; i < steps->count && i < MOST_STEP_EVENTS; i++) vr_answer_f64(query->answer, column, (double)steps->first[i]);
}

static enum vram_status put_growth(const struct vr_query *query, const struct vr_pattern_search *search) {
    struct vr_json *json = &query->answer->json;
    const struct vr_growth *growth = vr_growth_search_found(search->growth);
    enum vram_status status = VRAM_OK;
    const size_t event = vr_answer_column(query->answer, "point_event", VR_F64), total = vr_answer_column(query->answer, "total", VR_F64);
    const size_t bytes = vr_answer_column(query->answer, "bytes", VR_F64);
    for (size_t p = 0; p < growth->point_count; p++) {
        vr_answer_f64(query->answer, event, (double)growth->point[p]);
        vr_answer_f64(query->answer, total, (double)growth->total[p]);
    }
    vr_leak_answer_json(vr_recording_model(search->selection.recording->recording), &search->steps, &search->finding, json);
    vr_json_u64(json, "leaks", search->finding.leaks);
    vr_json_double(json, "bytes_per_step", search->finding.bytes_per_step);
    vr_json_string(json, "by", vr_grouping_words[search->grouping.by]);
    vr_json_array(json, "groups");
    for (size_t i = 0; i < search->finding.shown && status == VRAM_OK; i++) {
        const struct vr_grower *grower = &growth->grower[i];
        vr_json_object(json, NULL);
        status = vr_group_name_json(&search->grouping, grower->key, json);
        vr_json_string(json, "verdict", vr_verdict_word(grower->verdict));
        vr_json_double(json, "bytes_per_step", grower->bytes_per_step);
        vr_json_double(json, "objects_per_step", grower->objects_per_step);
        vr_json_u64(json, "grew_points", grower->grew_points);
        vr_json_u64(json, "course_points", grower->course_points);
        vr_json_u64(json, "first_bytes", grower->first_bytes);
        vr_json_u64(json, "last_bytes", grower->last_bytes);
        vr_json_u64(json, "row", grower->row);
        vr_json_u64(json, "stack", search->selection.lifetimes->stack[grower->row]);
        vr_json_object_end(json);
        for (size_t p = 0; p < growth->point_count; p++) vr_answer_f64(query->answer, bytes, (double)grower->bytes[p]);
    }
    vr_json_array_end(json);
    return status;
}

static enum vram_status put_churn(const struct vr_query *query, const struct vr_pattern_search *search, size_t top) {
    struct vr_json *json = &query->answer->json;
    const struct vr_churn *churn = vr_churn_search_found(search->churn);
    enum vram_status status = VRAM_OK;
    vr_json_u64(json, "bytes", churn->bytes);
    vr_json_u64(json, "allocations", churn->allocations);
    vr_json_u64(json, "distinct", churn->count);
    vr_json_array(json, "groups");
    for (size_t i = 0; i < churn->count && i < top && status == VRAM_OK; i++) {
        const struct vr_group *group = &churn->group[i];
        vr_json_object(json, NULL);
        status = vr_group_name_json(&search->grouping, group->key, json);
        vr_json_double(json, "bytes_per_step", (double)group->bytes / (double)churn->steps);
        vr_json_double(json, "allocations_per_step", (double)group->count / (double)churn->steps);
        vr_json_u64(json, "largest_bytes", group->largest_bytes);
        vr_json_u64(json, "row", group->largest_row);
        vr_json_u64(json, "stack", search->selection.lifetimes->stack[group->largest_row]);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    return status;
}

enum vram_status vr_query_leaks(const struct vr_query *query) {
    const struct vr_pattern_search *search = NULL;
    double share = 0;
    VR_TRY(vr_step_search_pattern(query, VR_PATTERN_GROWTH, SIZE_MAX, &share, &search));
    put_leak_steps(query, search);
    return put_growth(query, search);
}

enum vram_status vr_query_churn(const struct vr_query *query) {
    const struct vr_pattern_search *search = NULL;
    double share = 0;
    int64_t top = 0;
    VR_TRY(vr_parameter_whole(query->parameters, "top", 1, 100000, 50, &top));
    VR_TRY(vr_step_search_pattern(query, VR_PATTERN_CHURN, SIZE_MAX, &share, &search));
    put_leak_steps(query, search);
    return put_churn(query, search, (size_t)top);
}
