// path_match.h: which files of one recording are which of another, where the program lies in another folder.
#ifndef VR_ANALYZE_PATH_MATCH_H
#define VR_ANALYZE_PATH_MATCH_H

#include "base/base.h"

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

#endif
