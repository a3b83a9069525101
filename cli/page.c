// The viewer's page, as it was when the command was built.
#include "page.h"

#ifdef VRAM_VIEWER_PAGE
// The assembler puts the file's bytes in; a NUL follows that does not count.
__asm__(".section .rodata\n"
        ".balign 16\n"
        "page_bytes:\n"
        ".incbin \"" VRAM_VIEWER_PAGE "\"\n"
        "page_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char page_bytes[] __attribute__((visibility("hidden")));
extern const char page_end[] __attribute__((visibility("hidden")));

const char *page_text(size_t *length) {
    *length = (size_t)(page_end - page_bytes);
    return page_bytes;
}
#else
const char *page_text(size_t *length) {
    *length = 0;
    return NULL;
}
#endif
