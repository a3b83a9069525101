#include "sim_values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../simulator/standins/common/read_values.h"
#include "beside.h"
#include "ui.h"

// Are these rules? `at`: of which option or file, for the message.
static bool are_rules(const char *command, const char *at, const char *text, bool lines) {
    struct vr_read_values made;
    struct vr_read_wrong wrong;
    const bool good = vr_read_values_parse(text, &made, &wrong);
    if (good)
        vr_read_values_release(&made);
    else if (lines && wrong.line > 0)
        (void)ui_usage(command, "vram: --values %s: line %zu: %s", at, wrong.line, wrong.why);
    else
        (void)ui_usage(command, "vram: %s: %s", at, wrong.why);
    return good;
}

// Adds it with a line's end; `text` has VR_READ_VALUES_BYTES. False after a message.
static bool add(const char *command, char *text, size_t *used, const char *more) {
    const size_t length = strlen(more);
    if (length + 2 > VR_READ_VALUES_BYTES - *used) {
        (void)ui_usage(command, "vram: more than %d bytes of rules for values", VR_READ_VALUES_BYTES - 1);
        return false;
    }
    memcpy(text + *used, more, length);
    *used += length;
    text[(*used)++] = '\n';
    text[*used] = '\0';
    return true;
}

// `bytes` has VR_READ_VALUES_BYTES + 1: what is longer is refused when it is added.
static bool read_file(const char *command, const char *path, char *bytes) {
    FILE *file = fopen(path, "rb");
    size_t length = file == NULL ? 0 : fread(bytes, 1, VR_READ_VALUES_BYTES, file);
    const bool failed = file == NULL || ferror(file) != 0;
    const int why = errno;
    if (file != NULL) (void)fclose(file);
    if (failed)
        (void)ui_usage(command, "vram: --values %s: %s", path, strerror(why));
    else if (memchr(bytes, '\0', length) != NULL)
        (void)ui_usage(command, "vram: --values %s: a NUL byte is in it: this is no text", path);
    else
        return bytes[length] = '\0', true;
    return false;
}

// The word is no file's name.
static bool is_none(const struct sim_values *values) { return values->file != NULL && strcmp(values->file, "none") == 0; }

static bool gather(const char *command, const struct sim_values *values, char *text, char *bytes) {
    size_t used = 0;
    for (size_t i = 0; i < values->rules.count; i++)
        if (!are_rules(command, "--value", values->rules.values[i], false) || !add(command, text, &used, values->rules.values[i]))
            return false;
    if (values->file != NULL && !is_none(values) &&
        !(read_file(command, values->file, bytes) && are_rules(command, values->file, bytes, true) && add(command, text, &used, bytes)))
        return false;
    if (values->nonzero == NULL) return true;
    if (snprintf(bytes, VR_READ_VALUES_BYTES, "aten::nonzero=%s", values->nonzero) >= VR_READ_VALUES_BYTES || strchr(bytes, '\n') != NULL) {
        (void)ui_usage(command, "vram: --nonzero takes a number or a part, such as 50%%");
        return false;
    }
    return are_rules(command, "--nonzero", bytes, false) && add(command, text, &used, bytes);
}

static bool put_first(const char *name, const char *first) {
    const char *before = getenv(name);
    const bool alone = before == NULL || before[0] == '\0';
    const size_t capacity = strlen(first) + (alone ? 0 : strlen(before)) + 2;
    char *value = malloc(capacity);
    if (value == NULL) return false;
    (void)snprintf(value, capacity, "%s%s%s", first, alone ? "" : ":", alone ? "" : before);
    const bool put = setenv(name, value, 1) == 0;
    free(value);
    return put;
}

bool sim_values_compute(const struct sim_values *values) {
    char folder[4096], bytes[24];
    if (is_none(values) || values->compute_bytes == 0 || !beside_fit(folder, sizeof folder)) return unsetenv("VRAM_SIM_COMPUTE") == 0;
    (void)snprintf(bytes, sizeof bytes, "%" PRIu64, values->compute_bytes);
    return setenv("VRAM_SIM_COMPUTE", bytes, 1) == 0 && put_first("PYTHONPATH", folder);
}

int sim_values_put(const char *command, const struct sim_values *values) {
    if (values->rules.count == 0 && (values->file == NULL || is_none(values)) && values->nonzero == NULL) return CLI_OK;
    char *text = calloc(2, VR_READ_VALUES_BYTES + 1), stacks[4096];
    int code = text == NULL ? CLI_BAD_INPUT : CLI_USAGE;
    if (text == NULL)
        ui_say("vram %s: there is not enough memory", command);
    else if (gather(command, values, text, text + VR_READ_VALUES_BYTES + 1))
        code = setenv("VRAM_SIM_VALUES", text, 1) == 0 ? CLI_OK : CLI_BAD_INPUT;
    // Places are found by it.
    if (code == CLI_OK && beside_stacks(stacks, sizeof stacks)) (void)setenv("VRAM_SIM_STACKS", stacks, 0);
    free(text);
    return code;
}
