// Reads any bytes as an option string: gives a result, never a crash; an accepted string can be printed and read again.
#include <stddef.h>
#include <stdint.h>

#include "config/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (text == NULL) return 0;
    if (size != 0) memcpy(text, data, size);
    text[size] = '\0';
    struct vr_options options, again;
    struct vram_error error;
    struct vr_text printed = {0};
    vr_options_init(&options);
    vr_options_init(&again);
    if (vr_options_parse(&options, text, &error) == VRAM_OK) {
        vr_options_print(&options, &printed);
        const char *string = vr_text_string(&printed);
        if (vr_options_parse(&again, string, &error) != VRAM_OK || memcmp(&options, &again, sizeof options) != 0) __builtin_trap();
    } else if (error.offset > strlen(text)) {
        __builtin_trap();
    }
    vr_text_release(&printed);
    free(text);
    return 0;
}
