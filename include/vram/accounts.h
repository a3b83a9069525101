// vram/accounts.h: now vram/oom.h; this name is kept for one release.
#ifndef VRAM_ACCOUNTS_H
#define VRAM_ACCOUNTS_H
#include "vram/oom.h"
#endif
