// hash.h: what every hash table of ours begins with: a secret, so that nobody who writes a file can choose where its entries fall.
//
// vr_mix64() alone is no defence: it can be inverted, and addresses made by inverting it fall into one slot. So each table mixes its keys
// with a secret of its own. Tables of numbers are base/map.h, tables of anything else base/hash_index.h; a third kind says why.
#ifndef VR_BASE_HASH_H
#define VR_BASE_HASH_H

#include "base/base.h"

// Adds to the secret of the process. For systems that lay out no addresses at random: the page's engine gets it from the browser. Before
// the first table is made; any thread.
void vr_hash_seed(uint64_t seed);
// A secret for a table that lies at `where`: differs by process (where addresses are laid out at random, or a seed was given) and by table.
// What a program can see must not depend on it.
uint64_t vr_hash_secret(const void *where);

#endif
