#include "report_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "input_files.h"
#include "role_rules_file.h"
#include "ui.h"
#include "vram/recording.h"
#include "vram/report.h"

enum { CHART_ROWS = 18 };

bool report_profile_settle(struct report_profile *profile) {
    struct moment_settings *moment = &profile->moment;
    if (profile->stack) moment->by = "stack";
    const bool moved = moment->at != NULL || moment->device != NULL || moment->active;
    profile->wanted = profile->site || profile->timeline || moved || moment->by != NULL || moment->regex != NULL || profile->roles != NULL;
    if (profile->timeline && profile->json) {
        ui_say("vram: --timeline is a chart; --json alone has the numbers under \"timeline\"");
        return false;
    }
    if (profile->roles != NULL && moment->by == NULL && moment->regex == NULL) moment->by = "role";
    if (!moment_options(moment, &profile->options)) return false;
    if (profile->roles == NULL) return true;
    profile->rules = role_rules_file_read(profile->roles);
    profile->options.roles = profile->rules;
    return profile->rules != NULL;
}

static enum vram_status print_timeline(const struct vram_recording *recording, const char *name, struct answers *answers,
                                       struct vram_error *error) {
    struct vram_report *report;
    const struct vram_style style = ui_style();
    enum vram_status status = vram_report_create(recording, NULL, &report, error);
    if (status != VRAM_OK) return status;
    status = vram_timeline_text(report, name, CHART_ROWS, &style, answers_write, answers);
    vram_report_destroy(report);
    return status;
}

static int show_opened(const struct input_opened *opened, void *context) {
    const struct report_profile *profile = context;
    const struct vram_recording *recording = opened->recording;
    const char *name = input_base_name(opened->facts.name);
    const struct vram_style style = ui_style();
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    enum vram_status status;
    if (profile->timeline)
        status = print_timeline(recording, name, opened->answers, &error);
    else if (profile->json)
        status = vram_profile_json(recording, &profile->options, name, answers_write, opened->answers, &error);
    else
        status = vram_profile_text(recording, &profile->options, name, &style, answers_write, opened->answers, &error);
    return ui_result(status, false, name, &error);
}

int report_profiles(struct report_profile *profile, char **operands, int count) {
    const struct input_work work = {.answer = show_opened, .context = profile, .json = profile->json, .between = "\n"};
    const int code = run_command(&work, operands, count);
    free(profile->rules);
    profile->rules = NULL;
    return code;
}
