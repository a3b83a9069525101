#include "analyze/role_rules.h"

#include <stdio.h>

enum { MOST_RULES = 200, MOST_WORD_BYTES = 40 };

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool find_role(const char *word, size_t length, enum vram_role *role) {
    for (size_t i = 0; i < VRAM_ROLE_COUNT; i++) {
        const char *known = vram_role_word(i);
        if (strlen(known) != length || memcmp(known, word, length) != 0) continue;
        *role = (enum vram_role)i;
        return true;
    }
    return false;
}

// One line, without its end: [line, end).
static enum vram_status parse_line(const char *line, const char *end, size_t number, struct vr_role_rule *rule, struct vram_error *error) {
    const char *word = line, *rest;
    while (line < end && !is_blank(*line)) line++;
    rest = line;
    while (rest < end && is_blank(*rest)) rest++;
    const int shown = (int)(line - word < MOST_WORD_BYTES ? line - word : MOST_WORD_BYTES);
    if (!find_role(word, (size_t)(line - word), &rule->role))
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "line %zu: '%.*s' is no role", number, shown, word);
    if (rest == end)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "line %zu: a regular expression should follow '%.*s'", number, shown,
                       word);
    char *expression = malloc((size_t)(end - rest) + 1);
    if (expression == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(expression, rest, (size_t)(end - rest));
    expression[end - rest] = '\0';
    struct vram_error why = {.status = VRAM_OK};
    const enum vram_status status = vr_finder_init(&rule->finder, expression, true, &why);
    free(expression);
    if (status == VRAM_OK || status == VRAM_NO_HOST_MEMORY) return status;
    return vr_fail(error, status, VRAM_NO_OFFSET, "line %zu: %.200s", number, why.message);
}

static enum vram_status parse_rules(const char *text, struct vr_role_rules *rules, struct vram_error *error) {
    size_t number = 0;
    while (*text != '\0') {
        const char *end = strchr(text, '\n');
        const char *next = end == NULL ? text + strlen(text) : end + 1;
        if (end == NULL) end = next;
        number++;
        while (text < end && is_blank(*text)) text++;
        while (end > text && (is_blank(end[-1]) || end[-1] == '\r')) end--;
        if (text < end && *text != '#') {
            if (rules->count == MOST_RULES)
                return vr_fail(error, VRAM_LIMIT, VRAM_NO_OFFSET, "line %zu: more than %d rules", number, MOST_RULES);
            VR_TRY(vr_grow((void **)&rules->rule, &rules->capacity, rules->count + 1, sizeof *rules->rule));
            VR_TRY(parse_line(text, end, number, &rules->rule[rules->count], error));
            rules->count++;
        }
        text = next;
    }
    return VRAM_OK;
}

enum vram_status vr_role_rules_parse(const char *text, struct vr_role_rules *rules, struct vram_error *error) {
    struct vr_role_rules made = {.rule = NULL};
    const enum vram_status status = text == NULL ? VRAM_OK : parse_rules(text, &made, error);
    if (status == VRAM_OK)
        *rules = made;
    else
        vr_role_rules_release(&made);
    return status;
}

void vr_role_rules_release(struct vr_role_rules *rules) {
    for (size_t i = 0; i < rules->count; i++) vr_finder_release(&rules->rule[i].finder);
    free(rules->rule);
    free(rules->of_frame);
    *rules = (struct vr_role_rules){.rule = NULL};
}

static uint8_t first_rule(const struct vr_role_rules *rules, const struct vr_model *model, uint32_t frame) {
    char text[VR_FINDER_BYTES];
    snprintf(text, sizeof text, "%.2000s:%lld:%.2000s", vr_model_string(model, model->frames.filename[frame]),
             (long long)model->frames.line[frame], vr_model_string(model, model->frames.name[frame]));
    for (size_t i = 0; i < rules->count; i++) {
        if (vr_finder_matches(&rules->rule[i].finder, text)) return (uint8_t)(i + 2);
    }
    return 1;
}

enum vram_status vr_role_rules_find(struct vr_role_rules *rules, const struct vr_model *model, uint32_t stack, enum vram_role *role) {
    *role = VRAM_ROLE_COUNT;
    if (rules->count == 0) return VRAM_OK;
    if (rules->model != model) {
        uint8_t *of_frame = calloc((size_t)model->frames.count + 1, sizeof *of_frame);
        if (of_frame == NULL) return VRAM_NO_HOST_MEMORY;
        free(rules->of_frame);
        rules->of_frame = of_frame;
        rules->model = model;
    }
    uint8_t best = UINT8_MAX;
    for (uint64_t i = model->stacks.offset[stack]; i < model->stacks.offset[stack + 1]; i++) {
        const uint32_t frame = model->stacks.frame[i];
        if (rules->of_frame[frame] == 0) rules->of_frame[frame] = first_rule(rules, model, frame);
        if (rules->of_frame[frame] >= 2 && rules->of_frame[frame] < best) best = rules->of_frame[frame];
    }
    if (best != UINT8_MAX) *role = rules->rule[best - 2].role;
    return VRAM_OK;
}
