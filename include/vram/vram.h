// vram.h: the whole public interface.
#ifndef VRAM_VRAM_H
#define VRAM_VRAM_H

#define VRAM_VERSION_MAJOR  0
#define VRAM_VERSION_MINOR  1
#define VRAM_VERSION_PATCH  0
#define VRAM_VERSION_STRING "0.1.0"

#include "vram/accounts.h"
#include "vram/allocator.h"
#include "vram/driver.h"
#include "vram/follow.h"
#include "vram/explain.h"
#include "vram/explorer.h"
#include "vram/export.h"
#include "vram/history.h"
#include "vram/host.h"
#include "vram/listing.h"
#include "vram/log.h"
#include "vram/graph.h"
#include "vram/options.h"
#include "vram/plan_cache.h"
#include "vram/pool.h"
#include "vram/profile.h"
#include "vram/prometheus.h"
#include "vram/recording.h"
#include "vram/replay.h"
#include "vram/report.h"
#include "vram/share.h"
#include "vram/sim.h"
#include "vram/snapshot.h"
#include "vram/stack.h"
#include "vram/stats.h"
#include "vram/status.h"
#include "vram/symbols.h"
#include "vram/tune.h"
#include "vram/walk.h"
#include "vram/workspace.h"
#include "vram/write.h"

#ifdef __cplusplus
extern "C" {
#endif

// The version of the library that is linked, which may differ from the header's. Never NULL.
VRAM_API const char *vram_version(void);

#ifdef __cplusplus
}
#endif
#endif
