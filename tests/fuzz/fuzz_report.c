// Any readable recording can be reported as JSON and as text, and the text has no control characters except newlines.
#include <stddef.h>
#include <stdint.h>

#include "vram/recording.h"
#include "vram/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool accept_printable(void *user, const char *bytes, size_t length) {
    (void)user;
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if ((c < 0x20 && c != '\n') || c == 0x7F) __builtin_trap();
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct vram_style style = {.columns = 80, .unicode = true};
    const struct vram_report_source source = {.file = "file", .bytes = size};
    struct vram_recording *recording;
    struct vram_report *report;
    if (vram_recording_read_memory(data, size, NULL, &recording, NULL) != VRAM_OK) return 0;
    const enum vram_status status = vram_report_create(recording, NULL, &report, NULL);
    vram_recording_destroy(recording);
    if (status != VRAM_OK) return 0;
    if (vram_report_json(report, &source, accept_printable, NULL) != VRAM_OK) __builtin_trap();
    if (vram_report_text(report, &source, &style, accept_printable, NULL) != VRAM_OK) __builtin_trap();
    vram_report_destroy(report);
    return 0;
}
