// cuFile in compatibility mode: really reads and writes files through host memory. Batches and settings of the storage driver are not
// simulated.
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "../common/calls.h"

enum {
    DRIVER_ERROR = 5011,
    INVALID_FILE_TYPE = 5018,
    INVALID_VALUE = 5022,
    HANDLE_NOT_REGISTERED = 5027,
    NO_MEMORY = 5043,
    NOT_SUPPORTED = 5007
};

// CUfileError_t.
struct status {
    int error, driver_error;
};
static const struct status success;
static struct status failed_status(int error) { return (struct status){error, 0}; }

// CUfileDescr_t.
struct file_description {
    int type;
    union {
        int descriptor;
        void *handle;
    } of;
    const void *operations;
};

#define FILE_HANDLE UINT64_C(0x637566696c650001)
struct file {
    struct standin_object object;
    int descriptor;
};

struct status cuFileHandleRegister(struct file **handle, const struct file_description *description) {
    enum { DESCRIPTOR = 1 };
    if (handle == NULL || description == NULL) return failed_status(INVALID_VALUE);
    if (description->type != DESCRIPTOR) return failed_status(INVALID_FILE_TYPE);
    struct file *made = standin_new(FILE_HANDLE, sizeof *made);
    if (made == NULL) return failed_status(NO_MEMORY);
    made->descriptor = description->of.descriptor;
    *handle = made;
    return success;
}

void cuFileHandleDeregister(struct file *handle) { (void)standin_destroy(handle, FILE_HANDLE); }

enum { PIECE = 1 << 20 };

// Moves bytes piece by piece. Returns the number of bytes moved, or a negative error.
static ssize_t move_bytes(const struct file *file, char *device, size_t bytes, off_t at, bool reads) {
    const struct standin_driver *driver = standin_begin();
    if (!standin_is(file, FILE_HANDLE)) return -HANDLE_NOT_REGISTERED;
    char *piece = driver == NULL ? NULL : malloc(PIECE);
    if (piece == NULL) return -NO_MEMORY;
    size_t done = 0;
    ssize_t result = 0;
    while (done < bytes && result >= 0) {
        const size_t wanted = bytes - done < PIECE ? bytes - done : PIECE;
        const uint64_t here = (uint64_t)(uintptr_t)piece, there = (uint64_t)(uintptr_t)device + done;
        if (!reads && driver->memcpy(here, there, wanted) != 0) result = -DRIVER_ERROR;
        if (result >= 0)
            result = reads ? pread(file->descriptor, piece, wanted, at + (off_t)done)
                           : pwrite(file->descriptor, piece, wanted, at + (off_t)done);
        if (result > 0 && reads && driver->memcpy(there, here, (size_t)result) != 0) result = -DRIVER_ERROR;
        if (result <= 0) break;
        done += (size_t)result;
    }
    free(piece);
    return done > 0 || result >= 0 ? (ssize_t)done : result == -1 ? -1 : result;
}

ssize_t cuFileRead(const struct file *file, char *buffer, size_t bytes, off_t at, off_t buffer_at) {
    return move_bytes(file, buffer + buffer_at, bytes, at, true);
}

ssize_t cuFileWrite(const struct file *file, char *buffer, size_t bytes, off_t at, off_t buffer_at) {
    return move_bytes(file, buffer + buffer_at, bytes, at, false);
}

// Waits for the stream, then does the transfer before it returns.
static struct status in_order(const struct file *file, char *buffer, const size_t *bytes, const off_t *at, const off_t *buffer_at,
                              ssize_t *result, uint64_t stream, bool reads) {
    const struct standin_driver *driver = standin_begin();
    if (bytes == NULL || at == NULL || buffer_at == NULL || result == NULL) return failed_status(INVALID_VALUE);
    if (driver == NULL || driver->stream_synchronize(stream) != 0) return failed_status(DRIVER_ERROR);
    *result = move_bytes(file, buffer + *buffer_at, *bytes, *at, reads);
    return success;
}

struct status cuFileReadAsync(const struct file *file, char *buffer, const size_t *bytes, const off_t *at, const off_t *buffer_at,
                              ssize_t *result, uint64_t stream) {
    return in_order(file, buffer, bytes, at, buffer_at, result, stream, true);
}

struct status cuFileWriteAsync(const struct file *file, char *buffer, const size_t *bytes, const off_t *at, const off_t *buffer_at,
                               ssize_t *result, uint64_t stream) {
    return in_order(file, buffer, bytes, at, buffer_at, result, stream, false);
}

struct status cuFileGetVersion(int *version) {
    if (version == NULL) return failed_status(INVALID_VALUE);
    *version = standin_library_version;
    return success;
}

long cuFileUseCount(void) { return 1; }

#define FINE(name)                                                                                                                         \
    struct status name(void) {                                                                                                             \
        return success;                                                                                                                    \
    }
FINE(cuFileBufRegister)
FINE(cuFileBufDeregister)
FINE(cuFileDriverOpen)
FINE(cuFileDriverClose)
FINE(cuFileDriverClose_v2)
FINE(cuFileStreamRegister)
FINE(cuFileStreamDeregister)
FINE(cuFileDriverSetPollMode)
FINE(cuFileDriverSetMaxDirectIOSize)
FINE(cuFileDriverSetMaxCacheSize)
FINE(cuFileDriverSetMaxPinnedMemSize)
FINE(cuFileSetParameterSizeT)
FINE(cuFileSetParameterBool)
FINE(cuFileSetParameterString)

#undef ABSENT
#define ABSENT(name)                                                                                                                       \
    struct status name(void) {                                                                                                             \
        STANDIN_MISSING(#name);                                                                                                            \
        return failed_status(NOT_SUPPORTED);                                                                                               \
    }
ABSENT(cuFileBatchIOSetUp)
ABSENT(cuFileBatchIOSubmit)
ABSENT(cuFileBatchIOGetStatus)
ABSENT(cuFileBatchIOCancel)
ABSENT(cuFileBatchIODestroy)
ABSENT(cuFileDriverGetProperties)
ABSENT(cuFileDriverGetP2PFlags)
ABSENT(cuFileDriverSetP2PFlags)
ABSENT(cuFileExportPCIeTopology)
ABSENT(cuFileGetBARSizeInKB)
ABSENT(cuFileGetParameterSizeT)
ABSENT(cuFileGetParameterBool)
ABSENT(cuFileGetParameterString)
ABSENT(cuFileGetParameterMinMaxValue)
ABSENT(cuFileGetParameterGpuBounceBufferSlabArray)
ABSENT(cuFileGetParameterPosixPoolSlabArray)
ABSENT(cuFileSetParameterGpuBounceBufferSlabArray)
ABSENT(cuFileSetParameterPosixPoolSlabArray)
ABSENT(cuFileGetStatsL1)
ABSENT(cuFileGetStatsL2)
ABSENT(cuFileGetStatsL3)
ABSENT(cuFileGetStatsLevel)
ABSENT(cuFileSetStatsLevel)
ABSENT(cuFileStatsReset)
ABSENT(cuFileStatsStart)
ABSENT(cuFileStatsStop)
