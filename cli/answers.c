#include "answers.h"

#include <stdio.h>
#include <stdlib.h>

#include "args.h"
#include "ui.h"

void answers_open(struct answers *answers, bool json, bool is_array, const char *between) {
    *answers = (struct answers){.json = json, .is_array = json && is_array, .between = between};
    if (answers->is_array) printf("[\n");
}

void answers_close(struct answers *answers) {
    if (answers->is_array)
        printf("\n]\n");
    else if (answers->json && answers->begun != 0)
        printf("\n");
}

void answers_expect(struct answers *answers) { answers->due = true; }

void answers_begin(struct answers *answers) {
    if (!answers->due) return;
    answers->due = false;
    if (answers->begun++ != 0) printf("%s", answers->json ? ",\n" : answers->between);
}

bool answers_write(void *user, const char *bytes, size_t length) {
    struct answers *answers = user;
    if (length != 0) answers_begin(answers);
    return ui_write(NULL, bytes, length);
}

struct vr_json *answer_json_begin(struct answer_json *answer) {
    *answer = (struct answer_json){.text = {.bytes = NULL}};
    vr_json_init(&answer->json, &answer->text, true);
    return &answer->json;
}

void answer_json_decimal(struct vr_json *json, const char *key, double value, int digits) {
    char text[64];
    (void)snprintf(text, sizeof text, "%.*f", digits, value);
    vr_json_double(json, key, strtod(text, NULL));
}

int answer_json_end(struct answer_json *answer, struct answers *answers) {
    const bool good = vr_text_status(&answer->text) == VRAM_OK;
    if (answers != NULL && good) (void)answers_write(answers, answer->text.bytes, answer->text.length);
    if (answers == NULL && good) printf("%s\n", vr_text_string(&answer->text));
    if (!good) ui_say("vram: no host memory for the answer");
    vr_text_release(&answer->text);
    return good ? CLI_OK : CLI_BAD_INPUT;
}
