// cusparse.h: status codes and handles of cuSPARSE.
#ifndef VR_STANDINS_CUSPARSE_CUSPARSE_H
#define VR_STANDINS_CUSPARSE_CUSPARSE_H

#include "../common/calls.h"

enum {
    CUSPARSE_NOT_INITIALIZED = 1,
    CUSPARSE_ALLOC_FAILED = 2,
    CUSPARSE_INVALID_VALUE = 3,
    CUSPARSE_EXECUTION_FAILED = 6,
    CUSPARSE_NOT_SUPPORTED = 10
};

#define CUSPARSE_HANDLE UINT64_C(0x6375737061720001)

static const struct standin_codes codes = {CUSPARSE_HANDLE,       CUSPARSE_NOT_INITIALIZED,  CUSPARSE_INVALID_VALUE,
                                           CUSPARSE_ALLOC_FAILED, CUSPARSE_EXECUTION_FAILED, CUSPARSE_NOT_SUPPORTED};

// Returns the buffer size from the table.
size_t standin_cusparse_buffer(void);

#endif
