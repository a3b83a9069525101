// Order: which work comes before which, as vector clocks.
#include <stdlib.h>

#include "check/check_state.h"

// ---- Clocks.

static bool widen_clock(struct vr_check_clock *clock, size_t count) {
    if (count <= clock->count) return true;
    if (VR_GROW(clock, ticks, count) != VRAM_OK) return false;
    memset(clock->ticks + clock->count, 0, (count - clock->count) * sizeof *clock->ticks);
    clock->count = count;
    return true;
}

bool vr_check_clock_join(struct vr_check_clock *to, const struct vr_check_clock *from) {
    if (!widen_clock(to, from->count)) return false;
    for (size_t i = 0; i < from->count; i++)
        if (to->ticks[i] < from->ticks[i]) to->ticks[i] = from->ticks[i];
    return true;
}

static bool set_tick(struct vr_check_clock *clock, size_t lane, uint64_t tick) {
    if (!widen_clock(clock, lane + 1)) return false;
    clock->ticks[lane] = tick;
    return true;
}

bool vr_check_clock_raise(struct vr_check_clock *clock, size_t lane, uint64_t tick) {
    return vr_check_clock_at(clock, lane) >= tick || set_tick(clock, lane, tick);
}

static size_t index_of(const struct vr_check *check, const struct vr_check_lane *lane) { return (size_t)(lane - check->lanes); }

static uint64_t last_tick(const struct vr_check *check, const struct vr_check_lane *lane) {
    return vr_check_clock_at(&lane->clock, index_of(check, lane));
}

static uint64_t next_tick(struct vr_check *check, struct vr_check_lane *lane) {
    const size_t index = index_of(check, lane);
    const uint64_t tick = vr_check_clock_at(&lane->clock, index) + 1;
    if (!set_tick(&lane->clock, index, tick)) check->failed = true;
    return tick;
}

// The lane comes after everything that the other one has done.
static void follow(struct vr_check *check, struct vr_check_lane *lane, const struct vr_check_lane *other) {
    const size_t index = index_of(check, other);
    if (vr_check_clock_at(&lane->clock, index) >= vr_check_clock_at(&other->clock, index)) return;
    if (!vr_check_clock_join(&lane->clock, &other->clock)) check->failed = true;
}

// ---- Lanes.

// Finds a lane that nothing uses and whose last tick comes before the clock, so that its next user is ordered after the last one. SIZE_MAX
// if the host is out of memory.
static size_t take_lane(struct vr_check *check, const struct vr_check_clock *after) {
    size_t index = 1;
    while (index < check->lane_count &&
           (check->lanes[index].open || vr_check_clock_at(after, index) < last_tick(check, &check->lanes[index])))
        index++;
    if (index == check->lane_count) {
        if (VR_GROW(check, lanes, check->lane_count + 1) != VRAM_OK) {
            check->failed = true;
            return SIZE_MAX;
        }
        check->lanes[check->lane_count++] = (struct vr_check_lane){.open = true};
    }
    struct vr_check_lane *lane = &check->lanes[index];
    *lane = (struct vr_check_lane){.clock = lane->clock, .open = true};
    return index;
}

size_t vr_check_branch(struct vr_check *check, const struct vr_check_clock *after) {
    const size_t index = take_lane(check, after);
    if (index == SIZE_MAX) return SIZE_MAX;
    struct vr_check_lane *lane = &check->lanes[index];
    lane->kind = VR_CHECK_LANE_BRANCH;
    if (!vr_check_clock_join(&lane->clock, after)) check->failed = true;
    return index;
}

void vr_check_stream_open(struct vr_check *check, uint64_t stream, uint64_t context, uint32_t device, enum vr_check_stream_kind kind) {
    if (check->failed || vr_map_get(&check->streams, stream) != 0) return;
    const size_t index = take_lane(check, &check->lanes[VR_CHECK_HOST].clock);
    if (index == SIZE_MAX || vr_map_set(&check->streams, stream, index + 1) != VRAM_OK) {
        check->failed = true;
        return;
    }
    struct vr_check_lane *lane = &check->lanes[index];
    lane->kind = VR_CHECK_LANE_STREAM;
    lane->stream_kind = kind;
    lane->stream = stream;
    lane->context = context;
    lane->device = device;
}

// The stream's work continues, so the lane is not reused until the host has waited for the work.
void vr_check_stream_close(struct vr_check *check, uint64_t stream) {
    const uint64_t place = vr_map_take(&check->streams, stream);
    if (place != 0) check->lanes[place - 1].open = false;
}

struct vr_check_lane *vr_check_lane_of(const struct vr_check *check, uint64_t stream) {
    const uint64_t place = vr_map_get(&check->streams, stream);
    return place == 0 || vr_check_is_off(check) ? NULL : &check->lanes[place - 1];
}

// The legacy stream and the blocking streams of its context wait for each other.
static bool are_mutual(const struct vr_check_lane *lane, const struct vr_check_lane *other) {
    if (other->kind != VR_CHECK_LANE_STREAM || other->context != lane->context) return false;
    if (lane->stream_kind == VR_CHECK_LEGACY) return other->stream_kind == VR_CHECK_BLOCKING;
    return lane->stream_kind == VR_CHECK_BLOCKING && other->stream_kind == VR_CHECK_LEGACY;
}

static void catch_up(struct vr_check *check, struct vr_check_lane *lane) {
    follow(check, lane, &check->lanes[VR_CHECK_HOST]);
    if (lane->kind != VR_CHECK_LANE_STREAM || lane->stream_kind == VR_CHECK_NON_BLOCKING) return;
    for (size_t i = 1; i < check->lane_count; i++)
        if (are_mutual(lane, &check->lanes[i])) follow(check, lane, &check->lanes[i]);
}

uint64_t vr_check_advance(struct vr_check *check, struct vr_check_lane *lane) {
    catch_up(check, lane);
    return next_tick(check, lane);
}

// ---- Points, and waits of streams.

void vr_check_mark(struct vr_check *check, uint64_t stream, struct vr_check_point **point) {
    struct vr_check_lane *lane = vr_check_lane_of(check, stream);
    if (*point == NULL && (*point = calloc(1, sizeof **point)) == NULL) check->failed = true;
    if (*point == NULL) return;
    (*point)->clock.count = 0;
    if (lane == NULL) return;
    (void)vr_check_advance(check, lane);
    if (!vr_check_clock_join(&(*point)->clock, &lane->clock)) check->failed = true;
}

void vr_check_point_drop(struct vr_check_point *point) {
    if (point == NULL) return;
    free(point->clock.ticks);
    free(point);
}

void vr_check_wait(struct vr_check *check, uint64_t stream, const struct vr_check_point *point) {
    struct vr_check_lane *lane = vr_check_lane_of(check, stream);
    if (lane == NULL || point == NULL) return;
    if (!vr_check_clock_join(&lane->clock, &point->clock)) check->failed = true;
    (void)vr_check_advance(check, lane);
}

void vr_check_wait_unknown(struct vr_check *check, uint64_t stream) {
    struct vr_check_lane *lane = vr_check_lane_of(check, stream);
    if (lane == NULL) return;
    for (size_t i = 0; i < check->lane_count; i++) follow(check, lane, &check->lanes[i]);
    (void)vr_check_advance(check, lane);
}

void vr_check_hold(struct vr_check *check, uint64_t stream) {
    struct vr_check_lane *lane = vr_check_lane_of(check, stream);
    if (lane == NULL) return;
    vr_check_wait_unknown(check, stream);
    vr_check_alone(check); // the value may be another process's
    lane->held = true;
}

// ---- Waits of the host.

static void host_follows(struct vr_check *check, const struct vr_check_clock *clock) {
    struct vr_check_lane *host = &check->lanes[VR_CHECK_HOST];
    if (!vr_check_clock_join(&host->clock, clock)) check->failed = true;
    (void)next_tick(check, host);
    if (VR_UNLIKELY(check->sharing != NULL)) vr_check_sharing_host(check);
}

void vr_check_host_wait(struct vr_check *check, const struct vr_check_point *point) {
    if (point != NULL && !vr_check_is_off(check)) host_follows(check, &point->clock);
}

void vr_check_host_wait_stream(struct vr_check *check, uint64_t stream) {
    struct vr_check_lane *lane = vr_check_lane_of(check, stream);
    if (lane == NULL) return;
    if (lane->stream_kind == VR_CHECK_LEGACY) (void)vr_check_advance(check, lane);
    lane->held = false;
    host_follows(check, &lane->clock);
}

void vr_check_host_wait_streams(struct vr_check *check, uint32_t device, uint64_t context) {
    struct vr_check_lane *host = &check->lanes[VR_CHECK_HOST];
    if (vr_check_is_off(check)) return;
    for (size_t i = 1; i < check->lane_count; i++) {
        struct vr_check_lane *lane = &check->lanes[i];
        if (lane->kind != VR_CHECK_LANE_STREAM) continue;
        if ((device != UINT32_MAX && lane->device != device) || (context != 0 && lane->context != context)) continue;
        lane->held = false;
        follow(check, host, lane);
    }
    (void)next_tick(check, host);
    if (VR_UNLIKELY(check->sharing != NULL)) vr_check_sharing_host(check);
}

void vr_check_host_wait_unknown(struct vr_check *check) {
    struct vr_check_lane *host = &check->lanes[VR_CHECK_HOST];
    for (size_t i = 1; i < check->lane_count; i++) follow(check, host, &check->lanes[i]);
    (void)next_tick(check, host);
    if (check->sharing != NULL) vr_check_sharing_host(check);
}

// A position is a lane and its tick.
enum { TICK_BITS = 48 };

uint64_t vr_check_position(struct vr_check *check, uint64_t stream) {
    const struct vr_check_lane *lane = vr_check_lane_of(check, stream);
    return lane == NULL ? 0 : (uint64_t)index_of(check, lane) << TICK_BITS | last_tick(check, lane);
}

bool vr_check_host_knows(const struct vr_check *check, uint64_t position) {
    const size_t lane = (size_t)(position >> TICK_BITS);
    return vr_check_clock_at(&check->lanes[VR_CHECK_HOST].clock, lane) >= (position & (((uint64_t)1 << TICK_BITS) - 1));
}
