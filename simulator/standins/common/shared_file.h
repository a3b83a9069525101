// shared_file.h: files of shared memory that `vram sim` makes and names in a variable: counts (missing.h, reads.h), the session
// (session.h).
#ifndef VR_STANDINS_COMMON_SHARED_FILE_H
#define VR_STANDINS_COMMON_SHARED_FILE_H

#include <stddef.h>
#include <stdint.h>

// The file that the variable names, mapped for good; its first eight bytes are `magic`. NULL where the variable is not set, or names
// anything but a plain file of that size that begins so. No descriptor is kept: a program may close what it does not know.
__attribute__((visibility("hidden"))) void *vr_shared_file(const char *variable, size_t size_bytes, uint64_t magic);

#endif
