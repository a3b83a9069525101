// Offers slow growth to programs that take the events of a running server themselves.
#include "analyze/slow_growth.h"
#include "vram/profile.h"

// The public struct is only a name for the internal one.
static struct vr_slow *inner(struct vram_slow_growth *growth) { return (struct vr_slow *)growth; }

enum vram_status vram_slow_growth_create(struct vram_slow_growth **growth) {
    VR_REQUIRE(growth);
    struct vr_slow *made = NULL;
    VR_TRY(vr_slow_create(&made));
    *growth = (struct vram_slow_growth *)made;
    return VRAM_OK;
}

void vram_slow_growth_destroy(struct vram_slow_growth *growth) { vr_slow_destroy(inner(growth)); }

int64_t vram_slow_growth_pass(struct vram_slow_growth *growth, int64_t time_us) {
    return growth == NULL ? time_us : vr_slow_pass(inner(growth), time_us);
}

enum vram_status vram_slow_growth_alloc(struct vram_slow_growth *growth, uint64_t key, uint64_t bytes) {
    VR_REQUIRE(growth);
    return vr_slow_alloc(inner(growth), key, bytes);
}

enum vram_status vram_slow_growth_free(struct vram_slow_growth *growth, uint64_t key, int64_t born_us, uint64_t bytes) {
    VR_REQUIRE(growth);
    return vr_slow_free(inner(growth), key, born_us, bytes);
}

enum vram_status vram_slow_growth_leaks(struct vram_slow_growth *growth, struct vram_slow_growth_leak *leaks, size_t capacity,
                                        size_t *count) {
    VR_REQUIRE(growth && leaks && count);
    struct vr_slow_course *courses = NULL;
    size_t found = 0, kept = 0;
    VR_TRY(vr_slow_judge(inner(growth), &courses, &found));
    for (; kept < found && kept < capacity && courses[kept].verdict == VR_SLOW_LEAK; kept++) {
        const struct vr_slow_course *course = &courses[kept];
        leaks[kept] = (struct vram_slow_growth_leak){
            .key = course->key, .since_us = course->since_us, .bytes_per_hour = course->bytes_per_hour, .sure = course->sure};
    }
    free(courses);
    *count = kept;
    return VRAM_OK;
}
