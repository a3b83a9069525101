// stack_python_code.h: copies of code objects' names, files and lines.
#ifndef VR_HISTORY_STACK_PYTHON_CODE_H
#define VR_HISTORY_STACK_PYTHON_CODE_H

#include "base/base.h"

// The three forms of the line table: co_lnotab (3.8, 3.9), PEP 626 (3.10), and PEP 657 (3.11 on).
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

// Returns the line of the instruction at `offset` (bytes of code); 0 if it has no line.
int64_t vr_python_line(const struct vr_python_code *code, uint64_t offset);

// Returns the id of a key (a 64-bit number other than 0) passed to vr_codes_add(); UINT32_MAX if unknown. Takes no lock.
uint32_t vr_codes_find(uint64_t key);
// Copies a code object's contents and maps `key` to them. Equal contents share one id. Returns UINT32_MAX if the host is out of memory.
uint32_t vr_codes_add(uint64_t key, const struct vr_python_code *code);
// Returns a stored copy, or NULL. Any thread.
const struct vr_python_code *vr_codes_get(uint32_t id);
uint64_t vr_codes_bytes(void);

#endif
