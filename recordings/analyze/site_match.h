// site_match.h: common names for the files and call sites of several runs of one program.
#ifndef VR_ANALYZE_SITE_MATCH_H
#define VR_ANALYZE_SITE_MATCH_H

#include "analyze/arena.h"
#include "analyze/profile.h"
#include "base/base.h"
#include "vram/profile.h"

// ---- Matches the files of two recordings, for programs in different folders.

#define VR_NO_PATH UINT32_MAX

// Distinct paths of one program on one side.
struct vr_paths {
    const char *const *path;
    size_t count;
};

// Sets match[i] to the index in `to` of the same file as from.path[i], or to VR_NO_PATH; indices are unique. Equal paths are the same file.
// Other paths match if they end alike: pairs of differing folders are tried in the order of the number of files that support them, so that
// whole trees match. NO_HOST_MEMORY.
enum vram_status vr_paths_match(struct vr_paths from, struct vr_paths to, uint32_t *match);

// The files of one side, and their paths on the other side.
struct vr_renamed_paths {
    const char **from; // distinct, sorted
    const char **to;   // for each; the same path if the other side does not have the file
    size_t count;
};

// Matches the files. Paths may occur several times; the arrays are borrowed and sorted. NO_HOST_MEMORY; *renamed is then unchanged.
enum vram_status vr_paths_rename(const char **from, size_t from_count, const char **to, size_t to_count, struct vr_renamed_paths *renamed);
void vr_renamed_paths_release(struct vr_renamed_paths *renamed);
// Returns the renamed path of a path in `from`.
const char *vr_renamed_path(const struct vr_renamed_paths *renamed, const char *path);

// ---- Common names for the call sites of several runs of one program, even if lines moved or the program is in another folder.

// A call site of one run.
struct vr_shared_site {
    size_t run;
    uint64_t key;         // of the run's grouping by call site
    const char *file;     // as in the last run
    const char *function; // from the run's model
    int64_t line;
    const char *name; // shared: "file:line:function", or "file:function" if lines cannot be matched
    uint32_t runs;    // bits: the runs with a site of that name
};

struct vr_shared_sites {
    struct vr_shared_site *site; // sorted by run, then key
    size_t count;
    struct vr_arena arena;
};

// Builds the shared sites. groupings: by call site, of each run; names and lines come from the last one. Files are matched by their paths.
// Sites of a function match at the same line, then in their order if all runs have the same number of them; the others become one site.
// NO_HOST_MEMORY; *sites is then unchanged.
enum vram_status vr_shared_sites_build(struct vr_grouping *const *groupings, size_t count, struct vr_shared_sites *sites);
void vr_shared_sites_release(struct vr_shared_sites *sites);
// Returns the site of a run's key, which some row of the run must have.
const struct vr_shared_site *vr_shared_site_of(const struct vr_shared_sites *sites, size_t run, uint64_t key);

#endif
