// stack_python_code.h: copies of what code objects say.
#ifndef VR_HISTORY_STACK_PYTHON_CODE_H
#define VR_HISTORY_STACK_PYTHON_CODE_H

#include "base/base.h"

// The three forms of the table of lines: co_lnotab (3.8, 3.9), the line table of PEP 626 (3.10), that of PEP 657 (3.11 on).
enum vr_python_lines { VR_PYTHON_LNOTAB, VR_PYTHON_PEP626, VR_PYTHON_PEP657 };

struct vr_python_code {
    const char *name;
    const char *filename;
    const unsigned char *lines;
    size_t line_bytes;
    int64_t first_line;
    enum vr_python_lines form;
    uint64_t hash;
};

// The line of the instruction at `offset` (bytes of code); 0 when it has none.
int64_t vr_python_line(const struct vr_python_code *code, uint64_t offset);

// The id of a key (any 64-bit number but 0) given to vr_codes_add(); UINT32_MAX for none. Takes no lock.
uint32_t vr_codes_find(uint64_t key);
// Keeps a code object's contents, which are copied, and lets `key` stand for it. Equal contents have one id. UINT32_MAX: no memory.
uint32_t vr_codes_add(uint64_t key, const struct vr_python_code *code);
// A copy that was kept, or NULL. Any thread.
const struct vr_python_code *vr_codes_get(uint32_t id);
uint64_t vr_codes_bytes(void);

#endif
