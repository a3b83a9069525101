// unpack.c: Zstandard for compressed code. libzstd is part of this library where the system has it as an archive: the program may bring
// another version of it under the same name.
#include "libcuda.h"

#include <zstd.h>

bool vr_libcuda_unpack_zstd(void *to, size_t to_bytes, const void *from, size_t from_bytes) {
    return ZSTD_decompress(to, to_bytes, from, from_bytes) == to_bytes;
}
