// utf8.h: one code point at a time from bytes that may be anything.
#ifndef VR_BASE_UTF8_H
#define VR_BASE_UTF8_H

#include "base/base.h"

#define VR_UTF8_MALFORMED UINT32_MAX

// Decodes the code point at bytes (length must not be 0) and returns how many bytes it took, at least 1. Surrogates encoded in three
// bytes are accepted and returned as such (Python's "surrogatepass"); anything else malformed is VR_UTF8_MALFORMED over one byte.
size_t vr_utf8_decode(const char *bytes, size_t length, uint32_t *code);

#endif
