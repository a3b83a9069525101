// Reads any bytes as a file of rules for roles: gives a result, never a crash; accepted rules are applied to a recording of one stack.
#include <stddef.h>
#include <stdint.h>

#include "analyze/roles.h"
#include "model/recording.h"
#include "vram/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char made[] = "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 512, \"size\": 512, \"stream\": 0, "
                           "\"frames\": [{\"filename\": \"data.py\", \"line\": 3, \"name\": \"get_batch\"}]}]]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct vram_recording *recording;
    char *text = malloc(size + 1);
    if (text == NULL) return 0;
    if (size != 0) memcpy(text, data, size);
    text[size] = '\0';
    if (recording == NULL && vram_recording_read_memory(made, sizeof made - 1, "made", &recording, NULL) != VRAM_OK) __builtin_trap();
    const struct vr_model *model = vr_recording_model(recording);
    struct vr_role_rules rules;
    struct vram_error error = {.status = VRAM_OK};
    if (vr_role_rules_parse(text, &rules, &error) == VRAM_OK) {
        enum vram_role role;
        for (uint32_t stack = 0; stack < model->stacks.count; stack++) {
            if (vr_role_rules_find(&rules, model, stack, &role) != VRAM_OK || role > VRAM_ROLE_COUNT) __builtin_trap();
        }
        vr_role_rules_release(&rules);
    } else if (error.status != VRAM_OK && strncmp(error.message, "line ", 5) != 0) {
        __builtin_trap();
    }
    free(text);
    return 0;
}
