// unpack.c: decompresses Zstandard code. If the system has libzstd as an archive, it is linked statically, because the program may bring
// another version under the same name.
#include "libcuda.h"

#include <zstd.h>

bool vr_libcuda_unpack_zstd(void *to, size_t to_bytes, const void *from, size_t from_bytes) {
    return ZSTD_decompress(to, to_bytes, from, from_bytes) == to_bytes;
}
