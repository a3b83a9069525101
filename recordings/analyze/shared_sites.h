// shared_sites.h: the call sites of several runs of one program under names that they share, although lines moved or the program lies
// elsewhere.
#ifndef VR_ANALYZE_SHARED_SITES_H
#define VR_ANALYZE_SHARED_SITES_H

#include "analyze/arena.h"
#include "analyze/grouping.h"
#include "vram/profile.h"

// A call site of one run.
struct vr_shared_site {
    size_t run;
    uint64_t key;         // of the run's grouping by call site
    const char *file;     // as the last run has it
    const char *function; // of the run's model
    int64_t line;
    const char *name; // shared: "file:line:function", or "file:function" where lines cannot be told apart
    uint32_t runs;    // bits: which runs have a site of that name
};

struct vr_shared_sites {
    struct vr_shared_site *site; // by run, then key
    size_t count;
    struct vr_arena arena;
};

// groupings: by call site, of each run; the last one's names and lines are shown. Same files are told by path_match.h; of a function sites
// at the same line are the same, as many others go by their order, and what is left is one. NO_HOST_MEMORY; *sites is untouched then.
enum vram_status vr_shared_sites_build(struct vr_grouping *const *groupings, size_t count, struct vr_shared_sites *sites);
void vr_shared_sites_release(struct vr_shared_sites *sites);
// That of a run's key, which some row of the run has.
const struct vr_shared_site *vr_shared_site_of(const struct vr_shared_sites *sites, size_t run, uint64_t key);

#endif
