// doors.h: what the parts of the preloaded library that guard its own state share.
#ifndef PL_DOORS_H
#define PL_DOORS_H

#include "preload.h"

// Held across fork(), so that the child finds the slots whole.
void pl_doors_lock(void);
void pl_doors_unlock(void);
// In a child where nobody unlocked them: they are free.
void pl_doors_renew(void);

#endif
