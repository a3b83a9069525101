#include "fit_remedies.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "fit_place.h"
#include "ui.h"
#include "vram/demand.h"
#include "vram/report.h"

enum { MOST_PRINTED = 3, TEXT_COLUMN = 17, TEXT_WIDTH = 80 };

void fit_find_remedies(const struct fit_verdict *verdict, const struct fit_setting *setting, struct fit_remedies *remedies) {
    const struct fit_holding *highest = verdict->highest;
    const struct vram_report_options options = {.top = 4, .memory_bytes = setting->room_bytes};
    *remedies = (struct fit_remedies){.report = NULL};
    if (!setting->any || setting->found || setting->room_bytes == 0 || highest->process->whole_program) return;
    if (vram_report_create(verdict->recording, &options, &remedies->report, NULL) != VRAM_OK) return;
    for (size_t i = 0; i < remedies->report->device_count; i++) {
        const struct vram_report_device *device = &remedies->report->devices[i];
        if (device->device == highest->device && !device->is_host) remedies->demand = device->demand;
    }
}

void fit_remedies_release(struct fit_remedies *remedies) {
    vram_report_destroy(remedies->report);
    *remedies = (struct fit_remedies){.report = NULL};
}

bool fit_remedies_know_passes(const struct fit_remedies *remedies) {
    static const char *const phases[] = {"forward", "backward", "optimizer"};
    for (size_t i = 0; remedies->demand != NULL && i < sizeof phases / sizeof *phases; i++)
        if (strcmp(remedies->demand->phase, phases[i]) == 0) return true;
    return false;
}

// The sentence, with the folder and file of a call site in place of its whole path.
static void print_sentence(const struct vram_report_remedy *remedy) {
    char text[2000];
    const char *site = remedy->site[0] == '\0' ? NULL : strstr(remedy->text, remedy->site);
    if (site == NULL)
        (void)snprintf(text, sizeof text, "%s", remedy->text);
    else
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(site - remedy->text), remedy->text, fit_site_short(remedy->site),
                       site + strlen(remedy->site));
    ui_wrap(stdout, text, TEXT_COLUMN, TEXT_WIDTH);
    printf("\n");
}

void fit_remedies_print(const struct fit_remedies *remedies, bool batch_printed) {
    size_t printed = 0;
    for (size_t i = 0; remedies->demand != NULL && i < remedies->demand->remedy_count && printed < MOST_PRINTED; i++) {
        const struct vram_report_remedy *remedy = &remedies->demand->remedies[i];
        if (batch_printed && remedy->remedy == VRAM_REMEDY_BATCH) continue;
        printf("  %-*s", TEXT_COLUMN - 2, printed++ == 0 ? "Or change" : "");
        print_sentence(remedy);
    }
}

void fit_remedies_json(struct vr_json *json, const struct fit_remedies *remedies) {
    if (remedies->demand == NULL) {
        vr_json_null(json, "remedies");
        return;
    }
    vr_json_array(json, "remedies");
    for (size_t i = 0; i < remedies->demand->remedy_count; i++) {
        const struct vram_report_remedy *remedy = &remedies->demand->remedies[i];
        vr_json_object(json, NULL);
        vr_json_string(json, "remedy", vram_remedy_name(remedy->remedy));
        vr_json_bool(json, "fits", remedy->fits);
        vr_json_u64(json, "saved_bytes", remedy->saved_bytes);
        vr_json_u64(json, "left_bytes", remedy->left_bytes);
        vr_json_string(json, "site", remedy->site);
        vr_json_string(json, "text", remedy->text);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}
