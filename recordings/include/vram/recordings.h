// recordings.h: all headers about recordings of device memory: taking, reading, writing, explaining and replaying them.
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
