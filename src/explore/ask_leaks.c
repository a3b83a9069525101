// `leaks`: what grows from step to step. `churn`: what is made and freed within every step.
#include "analyze/growth.h"
#include "explore/holders.h"

#include "model/recording.h"

enum { MOST_GROWERS = 256, MOST_STEPS_TOLD = 4096 };

static enum vram_status find_steps(const struct vr_ask *ask, const struct vr_seen_device *device, struct vr_steps *steps) {
    int64_t every = 0;
    VR_TRY(vr_question_whole(ask->question, "every", 1, UINT32_MAX, 0, &every));
    const struct vr_step_wish wish = {.name = vr_question_text(ask->question, "step"), .every = (uint64_t)every};
    return vr_steps_find(device->view, &wish, steps);
}

static void put_steps(const struct vr_ask *ask, const struct vr_holders *chosen, const struct vr_steps *steps) {
    struct vr_json *json = &ask->answer->json;
    vr_json_string(json, "source", vr_step_source_word(steps->source));
    if (steps->name != 0) vr_json_string(json, "step_name", vr_model_string(vr_recording_model(chosen->recording->recording), steps->name));
    vr_json_u64(json, "steps", steps->count);
    const size_t column = vr_answer_column(ask->answer, "step_event", VR_F64);
    for (size_t i = 0; i < steps->count && i < MOST_STEPS_TOLD; i++) vr_answer_f64(ask->answer, column, (double)steps->first[i]);
}

static enum vram_status put_name(struct vr_json *json, const struct vr_grouping *grouping, uint64_t key) {
    struct vr_text name = {0};
    vr_grouping_name(grouping, key, &name);
    const enum vram_status status = vr_text_status(&name);
    vr_json_string_bytes(json, "name", vr_text_string(&name), name.length);
    vr_text_release(&name);
    return status;
}

static enum vram_status put_growth(const struct vr_ask *ask, const struct vr_holders *chosen, const struct vr_grouping *grouping,
                                   const struct vr_growth *growth) {
    struct vr_json *json = &ask->answer->json;
    enum vram_status status = VRAM_OK;
    const size_t event = vr_answer_column(ask->answer, "point_event", VR_F64), total = vr_answer_column(ask->answer, "total", VR_F64);
    const size_t bytes = vr_answer_column(ask->answer, "bytes", VR_F64);
    for (size_t p = 0; p < growth->point_count; p++) {
        vr_answer_f64(ask->answer, event, (double)growth->point[p]);
        vr_answer_f64(ask->answer, total, (double)growth->total[p]);
    }
    vr_json_array(json, "groups");
    for (size_t i = 0; i < growth->count && status == VRAM_OK; i++) {
        const struct vr_grower *grower = &growth->grower[i];
        vr_json_object(json, NULL);
        status = put_name(json, grouping, grower->key);
        vr_json_string(json, "verdict", vr_verdict_word(grower->verdict));
        vr_json_double(json, "bytes_per_step", grower->bytes_per_step);
        vr_json_double(json, "objects_per_step", grower->objects_per_step);
        vr_json_double(json, "confidence", grower->confidence);
        vr_json_u64(json, "first_bytes", grower->first_bytes);
        vr_json_u64(json, "last_bytes", grower->last_bytes);
        vr_json_u64(json, "row", grower->row);
        vr_json_u64(json, "stack", chosen->lifetimes->stack[grower->row]);
        vr_json_object_end(json);
        for (size_t p = 0; p < growth->point_count; p++) vr_answer_f64(ask->answer, bytes, (double)grower->bytes[p]);
    }
    vr_json_array_end(json);
    return status;
}

static enum vram_status put_churn(const struct vr_ask *ask, const struct vr_holders *chosen, const struct vr_grouping *grouping,
                                  const struct vr_churn *churn, size_t top) {
    struct vr_json *json = &ask->answer->json;
    enum vram_status status = VRAM_OK;
    vr_json_u64(json, "bytes", churn->bytes);
    vr_json_u64(json, "allocations", churn->allocations);
    vr_json_u64(json, "distinct", churn->count);
    vr_json_array(json, "groups");
    for (size_t i = 0; i < churn->count && i < top && status == VRAM_OK; i++) {
        const struct vr_group *group = &churn->group[i];
        vr_json_object(json, NULL);
        status = put_name(json, grouping, group->key);
        vr_json_double(json, "bytes_per_step", (double)group->bytes / (double)churn->steps);
        vr_json_double(json, "allocations_per_step", (double)group->count / (double)churn->steps);
        vr_json_u64(json, "largest_bytes", group->largest_bytes);
        vr_json_u64(json, "row", group->largest_row);
        vr_json_u64(json, "stack", chosen->lifetimes->stack[group->largest_row]);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    return status;
}

// The device, its steps and the grouping of a question; what is live does not matter.
struct subject {
    struct vr_holders chosen;
    struct vr_steps steps;
    struct vr_grouping grouping;
};

static enum vram_status open_subject(const struct vr_ask *ask, struct subject *subject) {
    enum vr_notion notion = VR_ALLOCATED;
    struct vr_holders *chosen = &subject->chosen;
    *subject = (struct subject){.chosen.rows = NULL};
    VR_TRY(vr_ask_device(ask, &chosen->recording, &chosen->device));
    VR_TRY(vr_ask_notion(ask, &notion));
    VR_TRY(vr_seen_lifetimes(chosen->device, notion, &chosen->lifetimes));
    VR_TRY(find_steps(ask, chosen->device, &subject->steps));
    const enum vram_status status = vr_ask_grouping(ask, chosen, &subject->grouping);
    if (status != VRAM_OK) vr_steps_release(&subject->steps);
    return status;
}

static void close_subject(struct subject *subject) {
    vr_grouping_release(&subject->grouping);
    vr_steps_release(&subject->steps);
}

enum vram_status vr_ask_leaks(const struct vr_ask *ask) {
    struct subject subject;
    struct vr_growth growth;
    int64_t top = 50;
    VR_TRY(vr_question_whole(ask->question, "top", 1, MOST_GROWERS, 50, &top));
    VR_TRY(open_subject(ask, &subject));
    enum vram_status status = vr_growth_find(&subject.grouping, &subject.steps, (size_t)top, &growth);
    if (status == VRAM_OK) {
        put_steps(ask, &subject.chosen, &subject.steps);
        status = put_growth(ask, &subject.chosen, &subject.grouping, &growth);
        vr_growth_release(&growth);
    }
    close_subject(&subject);
    return status;
}

enum vram_status vr_ask_churn(const struct vr_ask *ask) {
    struct subject subject;
    struct vr_churn churn;
    int64_t top = 50;
    VR_TRY(vr_question_whole(ask->question, "top", 1, 100000, 50, &top));
    VR_TRY(open_subject(ask, &subject));
    enum vram_status status = vr_churn_find(&subject.grouping, &subject.steps, &churn);
    if (status == VRAM_OK) {
        put_steps(ask, &subject.chosen, &subject.steps);
        status = put_churn(ask, &subject.chosen, &subject.grouping, &churn, (size_t)top);
        vr_churn_release(&churn);
    }
    close_subject(&subject);
    return status;
}
