// site_match.h: the files and the call sites of several runs of one program under names that they share.
#ifndef VR_ANALYZE_SITE_MATCH_H
#define VR_ANALYZE_SITE_MATCH_H

#include "analyze/arena.h"
#include "analyze/profile.h"
#include "base/base.h"
#include "vram/profile.h"

// ---- Which files of one recording are which of another, where the program lies in another folder.

#define VR_NO_PATH UINT32_MAX

// Paths of one program on one side; no two alike.
struct vr_paths {
    const char *const *path;
    size_t count;
};

// match[i] is set to the place in `to` of the file that from.path[i] is, or VR_NO_PATH; no two have the same place. Equal paths are the
// same file. The others end alike: the folders above what they share are taken for one another in the order in which most files speak for
// that, so that a whole tree goes together. NO_HOST_MEMORY.
enum vram_status vr_paths_match(struct vr_paths from, struct vr_paths to, uint32_t *match);

// The files of one side under the paths that another has for them.
struct vr_renamed_paths {
    const char **from; // distinct, sorted
    const char **to;   // for each; the same where the other side does not have the file
    size_t count;
};

// Paths may be given several times; they are borrowed and put in order. NO_HOST_MEMORY; *renamed is untouched then.
enum vram_status vr_paths_rename(const char **from, size_t from_count, const char **to, size_t to_count, struct vr_renamed_paths *renamed);
void vr_renamed_paths_release(struct vr_renamed_paths *renamed);
// Of a path that was given.
const char *vr_renamed_path(const struct vr_renamed_paths *renamed, const char *path);

// ---- The call sites of several runs of one program under names that they share, although lines moved or the program lies elsewhere.

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

// groupings: by call site, of each run; the last one's names and lines are shown. Same files are found by their paths; of a function sites
// at the same line are the same, as many others go by their order, and what is left is one. NO_HOST_MEMORY; *sites is untouched then.
enum vram_status vr_shared_sites_build(struct vr_grouping *const *groupings, size_t count, struct vr_shared_sites *sites);
void vr_shared_sites_release(struct vr_shared_sites *sites);
// That of a run's key, which some row of the run has.
const struct vr_shared_site *vr_shared_site_of(const struct vr_shared_sites *sites, size_t run, uint64_t key);

#endif
