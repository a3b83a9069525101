// Expands file names that contain the process, the rank, the machine and the time.
#include "base/text.h"
#include "os/os.h"
#include "vram/history.h"

static const char *rank_of_process(void) {
    static const char *const variables[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"};
    for (size_t i = 0; i < VR_COUNT_OF(variables); i++) {
        const char *value = vr_os_getenv(variables[i]);
        // Accept digits only, so that the value cannot name a folder.
        if (value != NULL && value[0] != '\0' && strspn(value, "0123456789") == strlen(value)) return value;
    }
    return "0";
}

static bool expand_letter(char letter, struct vr_text *path) {
    char text[256];
    switch (letter) {
    case '%': vr_text_puts(path, "%"); return true;
    case 'p': vr_text_printf(path, "%llu", (unsigned long long)vr_os_process_id()); return true;
    case 'r': vr_text_puts(path, rank_of_process()); return true;
    case 'h':
        vr_os_host_name(text, sizeof text);
        vr_text_puts(path, text);
        return true;
    case 't':
        vr_os_utc_text(text);
        vr_text_puts(path, text);
        return true;
    default: return false;
    }
}

enum vram_status vram_expand_path(const char *pattern, char *path, size_t capacity, size_t *length) {
    VR_REQUIRE(pattern);
    struct vr_text text = {0};
    bool good = true;
    for (const char *at = pattern; good && *at != '\0'; at++) {
        if (*at != '%') {
            vr_text_append(&text, at, 1);
        } else {
            good = expand_letter(*++at, &text);
        }
    }
    enum vram_status status = good ? vr_text_status(&text) : VRAM_INVALID_ARGUMENT;
    if (status == VRAM_OK) {
        if (capacity != 0) {
            const size_t copied = text.length < capacity ? text.length : capacity - 1;
            memcpy(path, vr_text_string(&text), copied);
            path[copied] = '\0';
        }
        if (length != NULL) *length = text.length;
    }
    vr_text_release(&text);
    return status;
}
