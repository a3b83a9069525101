// recordings.h: recordings of device memory, and all that is made of them: read, taken, written, explained, replayed.
#ifndef VRAM_RECORDINGS_H
#define VRAM_RECORDINGS_H

#include "vram/columns.h"
#include "vram/demand.h"
#include "vram/explorer.h"
#include "vram/export.h"
#include "vram/log.h"
#include "vram/oom.h"
#include "vram/profile.h"
#include "vram/recording.h"
#include "vram/replay.h"
#include "vram/report.h"
#include "vram/roles.h"
#include "vram/snapshot.h"
#include "vram/stack.h"

#endif
