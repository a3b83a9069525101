// vram.h: includes all headers of the allocator. Headers for recordings are in vram/recordings.h.
#ifndef VRAM_VRAM_H
#define VRAM_VRAM_H

#define VRAM_VERSION_MAJOR  0
#define VRAM_VERSION_MINOR  1
#define VRAM_VERSION_PATCH  0
#define VRAM_VERSION_STRING "0.1.0"

#include "vram/allocator.h"
#include "vram/driver.h"
#include "vram/events.h"
#include "vram/history.h"
#include "vram/host.h"
#include "vram/options.h"
#include "vram/pool.h"
#include "vram/share.h"
#include "vram/sleep.h"
#include "vram/stats.h"
#include "vram/status.h"
#include "vram/verify.h"
#include "vram/workspace.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns the version of the linked library, which may differ from the header's. Never NULL.
VRAM_API const char *vram_version(void);

#ifdef __cplusplus
}
#endif
#endif
