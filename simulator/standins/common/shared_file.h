// shared_file.h: shared-memory files that `vram sim` creates and names in variables: counts (missing.h, reads.h) and the session
// (session.h).
#ifndef VR_STANDINS_COMMON_SHARED_FILE_H
#define VR_STANDINS_COMMON_SHARED_FILE_H

#include <stddef.h>
#include <stdint.h>

// Maps the file that the variable names, for the life of the process; its first eight bytes must be `magic`. Returns NULL if the variable
// is not set, or if the file is not a regular file of that size with that magic. Keeps no descriptor open, because programs may close
// descriptors that they do not know.
__attribute__((visibility("hidden"))) void *vr_shared_file(const char *variable, size_t size_bytes, uint64_t magic);

#endif
