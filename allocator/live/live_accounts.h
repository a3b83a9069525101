// live_accounts.h: accounts (vram/accounts.h) as text.
#ifndef VR_LIVE_LIVE_ACCOUNTS_H
#define VR_LIVE_LIVE_ACCOUNTS_H

#include "base/text.h"
#include "vram/accounts.h"
#include "vram/oom.h"

#define VR_ACCOUNTS_KEY "vram_accounts_0" // of a snapshot, which is of one moment

// Appends the accounts as one JSON object: the value of a setting `vram_accounts_<slot>`.
void vr_accounts_text(const struct vram_accounts *accounts, struct vr_text *text);

#endif
