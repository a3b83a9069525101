// The viewer's page, as it was when the command was built.
#include <stdint.h>

#include "page.h"

#ifdef VRAM_VIEWER_PAGE
#ifdef __wasm__
// There every object says its size, and a label that ends one is no address.
__asm__(".section .rodata.page_bytes,\"\",@\n"
        "page_bytes:\n"
        ".incbin \"" VRAM_VIEWER_PAGE "\"\n"
        ".Lpage_end:\n"
        ".byte 0\n"
        ".size page_bytes, .Lpage_end-page_bytes+1\n"
        ".section .rodata.page_length,\"\",@\n"
        "page_length:\n"
        ".int32 .Lpage_end-page_bytes\n"
        ".size page_length, 4\n");
extern const char page_bytes[];
extern const uint32_t page_length;
#define PAGE_LENGTH ((size_t)page_length)
#else
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
#define PAGE_LENGTH ((size_t)(page_end - page_bytes))
#endif

const char *page_text(size_t *length) {
    *length = PAGE_LENGTH;
    return page_bytes;
}
#else
const char *page_text(size_t *length) {
    *length = 0;
    return NULL;
}
#endif
