// Examples for the checker: blocks freed in use, uses after a free, and correct programs.
#include "check/check.h"
#include "unit/sim_fixture.h"

enum { A = 1, B = 2 };      // streams
#define SEGMENT 0x10000000u // of the driver
#define SIZE    0x200000u

static struct vr_check_finding last;
static int found;
static void note_finding(void *user, const struct vr_check_finding *finding) {
    (void)user;
    if (finding->may) return;
    last = *finding;
    found++;
}

static struct vr_check *begin(void) {
    struct vr_check *check;
    assert_int_equal(vr_check_create(note_finding, NULL, &check), VRAM_OK);
    vr_check_stream_open(check, A, 1, 0, VR_CHECK_NON_BLOCKING);
    vr_check_stream_open(check, B, 1, 0, VR_CHECK_NON_BLOCKING);
    vr_check_segment(check, SEGMENT, SIZE, false, (struct vr_check_place){1, "cuMemAlloc"});
    found = 0;
    return check;
}

static void use(struct vr_check *check, uint64_t stream, uint64_t address, uint64_t bytes, enum vr_check_effect effect, uint32_t stack) {
    const struct vr_check_access access = {.address = address, .size_bytes = bytes, .effect = effect};
    vr_check_work(check, stream, (struct vr_check_place){stack, "kernel"}, &access, 1);
}

static void order(struct vr_check *check, uint64_t first, uint64_t second) {
    struct vr_check_point *point = NULL;
    vr_check_mark(check, first, &point);
    vr_check_wait(check, second, point);
    vr_check_point_drop(point);
}

static struct vr_check_place at(uint32_t stack) { return (struct vr_check_place){stack, NULL}; }

// The best-known mistake: a block that stream B still reads is freed and handed out again on stream A.
static void a_block_reused_too_early(void **state) {
    struct vr_check *check = begin();
    vr_check_block(check, SEGMENT, 4096, false, at(10));
    use(check, A, SEGMENT, 4096, VR_CHECK_WRITE, 11);
    order(check, A, B);
    use(check, B, SEGMENT, 0, VR_CHECK_READ, 12);
    vr_check_block_end(check, SEGMENT, at(13));
    vr_check_block(check, SEGMENT, 2048, false, at(14));
    assert_int_equal(found, 0);
    use(check, A, SEGMENT, 0, VR_CHECK_WRITE, 15);
    assert_int_equal(found, 1);
    assert_int_equal(last.kind, VR_CHECK_FREED_IN_USE);
    assert_int_equal(last.earlier.stack, 12);
    assert_int_equal(last.earlier.stream, B);
    assert_int_equal(last.later.stack, 15);
    assert_int_equal(last.freed.stack, 13);
    assert_int_equal(last.allocated.stack, 10);
    use(check, A, SEGMENT, 0, VR_CHECK_WRITE, 15); // each once
    assert_int_equal(found, 1);
    vr_check_destroy(check);
    (void)state;
}

static void a_block_reused_after_a_wait(void **state) {
    struct vr_check *check = begin();
    vr_check_block(check, SEGMENT, 4096, false, at(10));
    use(check, B, SEGMENT, 0, VR_CHECK_READ, 12);
    vr_check_block_end(check, SEGMENT, at(13));
    vr_check_block(check, SEGMENT, 4096, false, at(14));
    order(check, B, A);
    use(check, A, SEGMENT, 0, VR_CHECK_WRITE, 15);
    // The same stream needs no wait.
    vr_check_block_end(check, SEGMENT, at(13));
    vr_check_block(check, SEGMENT, 512, false, at(14));
    use(check, A, SEGMENT, 0, VR_CHECK_WRITE, 16);
    assert_int_equal(found, 0);
    vr_check_destroy(check);
    (void)state;
}

// A kernel of unknown length is assumed to use its whole block once the block is freed, but only its first byte while it is live.
static void parts_of_a_block(void **state) {
    struct vr_check *check = begin();
    vr_check_block(check, SEGMENT, 4096, false, at(10));
    use(check, B, SEGMENT, 0, VR_CHECK_READ, 11);
    use(check, A, SEGMENT + 2048, 0, VR_CHECK_WRITE, 12);
    assert_int_equal(found, 0);
    vr_check_block_end(check, SEGMENT, at(13));
    vr_check_block(check, SEGMENT + 1024, 1024, false, at(14));
    use(check, A, SEGMENT + 1024, 0, VR_CHECK_WRITE, 15);
    assert_int_equal(found, 1);
    assert_int_equal(last.kind, VR_CHECK_FREED_IN_USE);
    assert_int_equal(last.earlier.stack, 11);
    vr_check_destroy(check);
    (void)state;
}

// Blocks of unknown size reach to the next live one.
static void blocks_of_unknown_size(void **state) {
    struct vr_check *check = begin();
    vr_check_block(check, SEGMENT, 0, false, at(10));
    vr_check_block(check, SEGMENT + 4096, 0, false, at(11));
    use(check, A, SEGMENT + 4096, 512, VR_CHECK_WRITE, 12);
    vr_check_block_end(check, SEGMENT + 4096, at(13));
    use(check, B, SEGMENT, 512, VR_CHECK_WRITE, 14);
    assert_int_equal(found, 0);
    use(check, B, SEGMENT + 4096, 512, VR_CHECK_READ, 15);
    assert_int_equal(found, 2); // freed, and unordered
    vr_check_block(check, SEGMENT + 4096, 0, false, at(16));
    use(check, A, SEGMENT + 4096, 512, VR_CHECK_WRITE, 17);
    assert_int_equal(found, 3);
    assert_int_equal(last.kind, VR_CHECK_FREED_IN_USE);
    assert_int_equal(last.earlier.stack, 15);
    vr_check_destroy(check);
    (void)state;
}

// A block of unknown size ends with its segment of the driver, although the next segment has the next address. Pages are one.
static void blocks_of_unknown_size_end_with_the_segment(void **state) {
    for (int mapped = 0; mapped <= 1; mapped++) {
        struct vr_check *check = begin();
        vr_check_segment(check, SEGMENT, SIZE, mapped, at(1));
        vr_check_segment(check, SEGMENT + SIZE, SIZE, mapped, at(2));
        vr_check_block(check, SEGMENT + SIZE, 0, false, at(10));
        use(check, B, SEGMENT + SIZE, 0, VR_CHECK_WRITE, 11);
        vr_check_block_end(check, SEGMENT + SIZE, at(12));
        assert_int_equal(vr_check_block_needs_size(check, SEGMENT + 4096, 0), mapped);
        vr_check_block(check, SEGMENT + 4096, mapped ? SIZE : 0, false, at(13));
        use(check, A, SEGMENT + 4096, 0, VR_CHECK_WRITE, 14);
        assert_int_equal(found, mapped);
        vr_check_destroy(check);
    }
    (void)state;
}

// A block of unknown size may end before memory that a stream still uses. Its size tells.
static void the_size_of_a_block_decides(void **state) {
    for (uint64_t size = 0; size <= 8192; size += 4096) {
        struct vr_check *check = begin();
        vr_check_block(check, SEGMENT + 4096, 0, false, at(10));
        assert_false(vr_check_block_needs_size(check, SEGMENT, 0));
        use(check, B, SEGMENT + 4096, 0, VR_CHECK_READ, 11);
        vr_check_block_end(check, SEGMENT + 4096, at(12));
        assert_true(vr_check_block_needs_size(check, SEGMENT, 0));
        assert_true(vr_check_block_needs_size(check, SEGMENT, A));
        assert_false(vr_check_block_needs_size(check, SEGMENT, B)); // its later work comes after that read
        vr_check_block(check, SEGMENT, size, false, at(13));
        use(check, A, SEGMENT, 0, VR_CHECK_WRITE, 14);
        assert_int_equal(found, size > 4096);
        vr_check_host_wait_stream(check, B);
        assert_false(vr_check_block_needs_size(check, SEGMENT, 0));
        vr_check_destroy(check);
    }
    (void)state;
}

static void uses_after_a_free(void **state) {
    struct vr_check *check = begin();
    vr_check_block(check, SEGMENT, 4096, false, at(10));
    vr_check_block_end(check, SEGMENT, at(11));
    use(check, A, SEGMENT, 0, VR_CHECK_USE, 12);
    assert_int_equal(found, 1);
    assert_int_equal(last.kind, VR_CHECK_USE_AFTER_FREE);
    assert_int_equal(last.freed.stack, 11);
    // Launches of a captured graph use its blocks after their end.
    vr_check_block(check, SEGMENT + 8192, 4096, true, at(13));
    vr_check_block_end(check, SEGMENT + 8192, at(14));
    use(check, A, SEGMENT + 8192, 0, VR_CHECK_WRITE, 15);
    assert_int_equal(found, 1);
    // A copy of the whole segment is not a use of one of its blocks.
    use(check, A, SEGMENT, SIZE, VR_CHECK_READ, 16);
    assert_int_equal(found, 1);
    vr_check_segment_end(check, SEGMENT, SIZE, true, at(17));
    use(check, A, SEGMENT + 8192, 0, VR_CHECK_WRITE, 18);
    vr_check_destroy(check);
    (void)state;
}

static void frees_in_the_order_of_a_stream(void **state) {
    struct vr_check *check = begin();
    const uint64_t address = SEGMENT + 2 * SIZE;
    vr_check_segment_on(check, address, 4096, A, at(20));
    use(check, B, address, 0, VR_CHECK_WRITE, 21); // not ordered after the allocation
    assert_int_equal(found, 1);
    assert_int_equal(last.kind, VR_CHECK_RACE);
    order(check, A, B);
    use(check, B, address, 0, VR_CHECK_WRITE, 22);
    vr_check_segment_end_on(check, address, A, at(23));
    assert_int_equal(found, 2);
    assert_int_equal(last.kind, VR_CHECK_FREED_IN_USE);
    assert_int_equal(last.later.stack, 23);
    vr_check_segment_on(check, address, 4096, B, at(24));
    use(check, B, address, 0, VR_CHECK_WRITE, 25);
    order(check, B, A);
    vr_check_segment_end_on(check, address, A, at(26));
    assert_int_equal(found, 2);
    use(check, A, address, 16, VR_CHECK_READ, 27);
    assert_int_equal(last.kind, VR_CHECK_USE_AFTER_FREE);
    vr_check_destroy(check);
    (void)state;
}

// Memory that is unmapped without a wait, and memory that the driver itself waits for.
static void segments_given_back(void **state) {
    struct vr_check *check = begin();
    use(check, A, SEGMENT, 64, VR_CHECK_WRITE, 30);
    vr_check_segment_end(check, SEGMENT, SIZE, false, at(31));
    assert_int_equal(found, 1);
    assert_int_equal(last.kind, VR_CHECK_FREED_IN_USE);
    vr_check_segment(check, SEGMENT, SIZE, false, at(32));
    use(check, A, SEGMENT, 64, VR_CHECK_WRITE, 33);
    vr_check_host_wait_stream(check, A);
    vr_check_segment_end(check, SEGMENT, SIZE, false, at(34));
    vr_check_segment(check, SEGMENT, SIZE, false, at(32));
    use(check, A, SEGMENT, 64, VR_CHECK_WRITE, 35);
    vr_check_segment_end(check, SEGMENT, SIZE, true, at(36));
    assert_int_equal(found, 1);
    vr_check_destroy(check);
    (void)state;
}

// Waits that the checker cannot follow count as waits for everything, and a stream that waits for a value causes no finding.
static void unknown_waits(void **state) {
    struct vr_check *check = begin();
    use(check, A, SEGMENT, 64, VR_CHECK_WRITE, 40);
    vr_check_wait_unknown(check, B);
    use(check, B, SEGMENT, 64, VR_CHECK_WRITE, 41);
    vr_check_hold(check, A);
    use(check, B, SEGMENT, 64, VR_CHECK_WRITE, 42);
    use(check, A, SEGMENT, 64, VR_CHECK_WRITE, 43);
    assert_int_equal(found, 0);
    vr_check_host_wait_stream(check, A);
    vr_check_host_wait_stream(check, B);
    use(check, B, SEGMENT, 64, VR_CHECK_WRITE, 44);
    use(check, A, SEGMENT, 64, VR_CHECK_WRITE, 45);
    assert_int_equal(found, 1);
    vr_check_destroy(check);
    (void)state;
}

// Streams open and close; later work is still compared with the work of a closed stream.
static void streams_come_and_go(void **state) {
    struct vr_check *check = begin();
    for (uint64_t i = 10; i < 2000; i++) {
        vr_check_stream_open(check, i, 1, 0, VR_CHECK_NON_BLOCKING);
        use(check, i, SEGMENT + i * 64, 64, VR_CHECK_WRITE, 50);
        vr_check_stream_close(check, i);
        if (i % 7 == 0) vr_check_host_wait_streams(check, 0, 0);
    }
    assert_int_equal(found, 0);
    use(check, A, SEGMENT + 1999 * 64, 64, VR_CHECK_READ, 51);
    assert_int_equal(found, 1);
    use(check, A, SEGMENT + 1900 * 64, 64, VR_CHECK_READ, 52);
    assert_int_equal(found, 1);
    vr_check_destroy(check);
    (void)state;
}

static void launch(struct vr_check *check, uint64_t captured, uint64_t address, enum vr_check_effect effect, uint32_t stack) {
    const struct vr_check_access access = {.address = address, .effect = effect};
    vr_check_launch_begin(check, A, 1, captured, at(stack + 1));
    vr_check_launch_step(check, NULL, 0, (struct vr_check_place){stack, "kernel"}, captured, &access, 1);
    vr_check_launch_end(check);
}

// Two graphs of one pool whose blocks have the same address. The first one overwrites the second one's result there, and only a read of
// that result is a mistake.
static void graphs_of_one_pool(void **state) {
    struct vr_check *check = begin();
    vr_check_block(check, SEGMENT, 4096, true, at(50));
    const uint64_t first = vr_check_lives(check);
    vr_check_block_end(check, SEGMENT, at(51));
    vr_check_block(check, SEGMENT, 4096, true, at(52));
    const uint64_t second = vr_check_lives(check);
    launch(check, first, SEGMENT, VR_CHECK_WRITE, 53);
    launch(check, first, SEGMENT, VR_CHECK_READ, 55); // its own scratch memory
    launch(check, second, SEGMENT, VR_CHECK_WRITE, 57);
    use(check, A, SEGMENT, 0, VR_CHECK_READ, 59);
    assert_int_equal(found, 0);
    launch(check, first, SEGMENT, VR_CHECK_WRITE, 53);
    assert_int_equal(found, 0);
    use(check, A, SEGMENT, 0, VR_CHECK_READ, 60);
    assert_int_equal(found, 1);
    assert_int_equal(last.kind, VR_CHECK_STALE_GRAPH);
    assert_int_equal(last.earlier.stack, 53);
    assert_int_equal(last.earlier.launch, 54);
    assert_int_equal(last.later.stack, 60);
    launch(check, first, SEGMENT, VR_CHECK_WRITE, 53);
    vr_check_block_end(check, SEGMENT, at(61)); // nothing is read there any more
    use(check, A, SEGMENT, 0, VR_CHECK_READ, 62);
    assert_int_equal(found, 1);
    vr_check_destroy(check);
    (void)state;
}

// Memory of a graph serves another block between launches: a launch while that block lives overwrites it, and one that is not ordered after
// its work is a conflict. A launch after both is right.
static void graphs_that_lend(void **state) {
    struct vr_check *check = begin();
    vr_check_block(check, SEGMENT, 4096, true, at(50));
    const uint64_t captured = vr_check_lives(check);
    vr_check_block_end(check, SEGMENT, at(51));
    for (int turn = 0; turn < 3; turn++) {
        launch(check, captured, SEGMENT, VR_CHECK_WRITE, 53);
        vr_check_block(check, SEGMENT, 2048, false, at(60));
        use(check, A, SEGMENT, 2048, VR_CHECK_WRITE, 61);
        vr_check_block_end(check, SEGMENT, at(62));
    }
    assert_int_equal(found, 0);
    vr_check_block(check, SEGMENT, 2048, false, at(63));
    launch(check, captured, SEGMENT, VR_CHECK_WRITE, 53);
    assert_int_equal(found, 1);
    assert_int_equal(last.kind, VR_CHECK_STALE_GRAPH);
    vr_check_block_end(check, SEGMENT, at(64));
    vr_check_block(check, SEGMENT, 2048, false, at(65));
    order(check, A, B);
    use(check, B, SEGMENT, 2048, VR_CHECK_WRITE, 66);
    vr_check_block_end(check, SEGMENT, at(67));
    assert_int_equal(found, 1);
    launch(check, captured, SEGMENT, VR_CHECK_WRITE, 68); // the launch did not wait for the block's stream
    assert_int_equal(found, 2);
    assert_int_equal(last.earlier.stack, 66);
    assert_int_equal(last.kind, VR_CHECK_RACE);
    vr_check_destroy(check);
    (void)state;
}

// Two loans at the same time, of unknown size: the second begins where the first seems to go on.
static void graphs_that_lend_twice(void **state) {
    struct vr_check *check = begin();
    vr_check_block(check, SEGMENT, 4096, true, at(50));
    const uint64_t captured = vr_check_lives(check);
    vr_check_block_end(check, SEGMENT, at(51));
    vr_check_block(check, SEGMENT, 0, false, at(60));
    vr_check_block(check, SEGMENT + 2048, 0, false, at(61));
    vr_check_block_end(check, SEGMENT, at(62));
    vr_check_block_end(check, SEGMENT + 2048, at(63));
    launch(check, captured, SEGMENT + 2048, VR_CHECK_WRITE, 53);
    assert_int_equal(found, 0);
    vr_check_destroy(check);
    (void)state;
}

// After a loan and a launch the memory is the graph's again: kernels between the graphs of a pool use it (vLLM's attention), also where the
// launched graph does not. Before the launch, a use of the freed loan is a mistake.
static void a_loan_that_was_taken_back(void **state) {
    struct vr_check *check = begin();
    vr_check_block(check, SEGMENT, 4096, true, at(50));
    vr_check_block(check, SEGMENT + 4096, 4096, true, at(51));
    const uint64_t captured = vr_check_lives(check);
    vr_check_block_end(check, SEGMENT, at(52));
    vr_check_block_end(check, SEGMENT + 4096, at(53));
    vr_check_block(check, SEGMENT, 8192, false, at(60));
    vr_check_block_end(check, SEGMENT, at(61));
    launch(check, captured, SEGMENT, VR_CHECK_WRITE, 54);
    use(check, A, SEGMENT, 0, VR_CHECK_READ, 62);
    use(check, A, SEGMENT + 4096, 0, VR_CHECK_WRITE, 63);
    assert_int_equal(found, 0);
    vr_check_block(check, SEGMENT, 8192, false, at(64));
    vr_check_block_end(check, SEGMENT, at(65));
    use(check, A, SEGMENT + 4096, 0, VR_CHECK_WRITE, 66);
    assert_int_equal(found, 1);
    assert_int_equal(last.kind, VR_CHECK_USE_AFTER_FREE);
    assert_int_equal(last.freed.stack, 65);
    vr_check_destroy(check);
    (void)state;
}

static void use_open(struct vr_check *check, uint64_t address, uint64_t bytes, enum vr_check_effect effect) {
    const struct vr_check_access access = {.address = address, .size_bytes = bytes, .effect = effect, .open = true};
    vr_check_work(check, A, (struct vr_check_place){77, "kernel"}, &access, 1);
}

// The backward graph of a pair reads a result of the forward graph, frees it, and gets its address for a block of its own. Both are steps
// of one launch. An access of a graph may also be longer than the blocks that are there now.
static void a_block_freed_in_a_later_capture(void **state) {
    struct vr_check *check = begin();
    vr_check_block(check, SEGMENT, 8192, true, at(110));
    const uint64_t forward = vr_check_lives(check);
    vr_check_block_end(check, SEGMENT, at(111)); // in the capture of the backward graph, after its first step
    vr_check_block(check, SEGMENT, 4096, true, at(112));
    vr_check_block(check, SEGMENT + 4096, 4096, true, at(113));
    const uint64_t backward = vr_check_lives(check);
    const struct vr_check_access reads = {.address = SEGMENT, .size_bytes = 8192, .effect = VR_CHECK_READ, .open = true};
    const struct vr_check_access writes = {.address = SEGMENT, .size_bytes = 4096, .effect = VR_CHECK_WRITE, .open = true};
    for (int i = 0; i < 2; i++) {
        launch(check, forward, SEGMENT, VR_CHECK_WRITE, 114);
        vr_check_launch_begin(check, A, 2, backward, at(117));
        vr_check_launch_step(check, NULL, 0, (struct vr_check_place){115, "kernel"}, forward, &reads, 1);
        vr_check_launch_step(check, (size_t[]){0}, 1, (struct vr_check_place){116, "kernel"}, backward, &writes, 1);
        vr_check_launch_end(check);
        use(check, A, SEGMENT, 0, VR_CHECK_READ, 118);
    }
    assert_int_equal(found, 0);
    vr_check_destroy(check);
    (void)state;
}

// Uninitialized bytes of a block. A write of unknown size counts for all of the block.
static void reads_of_what_nothing_wrote(void **state) {
    struct vr_check *check = begin();
    vr_check_block(check, SEGMENT, 4096, false, at(70));
    use(check, A, SEGMENT, 16, VR_CHECK_READ, 71);
    assert_int_equal(found, 0); // not asked for
    vr_check_find_unwritten(check);
    use(check, A, SEGMENT + 64, 64, VR_CHECK_WRITE, 72);
    use(check, A, SEGMENT, 64, VR_CHECK_WRITE, 73);
    use(check, A, SEGMENT + 256, 64, VR_CHECK_WRITE, 74);
    use(check, A, SEGMENT, 128, VR_CHECK_READ, 75);
    assert_int_equal(found, 0);
    use(check, A, SEGMENT + 32, 256, VR_CHECK_READ, 76);
    assert_int_equal(found, 1);
    assert_int_equal(last.kind, VR_CHECK_NEVER_WRITTEN);
    assert_int_equal(last.address, SEGMENT + 128);
    assert_int_equal(last.size_bytes, 128);
    assert_int_equal(last.earlier.stack, 70);
    assert_int_equal(last.later.stack, 76);
    vr_check_block_end(check, SEGMENT, at(78));
    vr_check_block(check, SEGMENT, 4096, false, at(79)); // its contents are the old block's
    use_open(check, SEGMENT, 64, VR_CHECK_WRITE);
    use(check, A, SEGMENT, 4096, VR_CHECK_READ, 80);
    vr_check_block(check, SEGMENT + 4096, 4096, false, at(81));
    vr_check_written(check, 0);
    use(check, A, SEGMENT + 4096, 4096, VR_CHECK_READ, 82);
    assert_int_equal(found, 1);
    vr_check_destroy(check);
    (void)state;
}

// A kernel that leaves its block for the next one. A copy of the whole segment does the same, and means it.
static void accesses_that_leave_their_block(void **state) {
    struct vr_check *check = begin();
    vr_check_block(check, SEGMENT, 4096, false, at(90));
    vr_check_block(check, SEGMENT + 4096, 4096, false, at(91));
    use(check, A, SEGMENT, SIZE, VR_CHECK_READ, 92);
    use(check, A, SEGMENT, 4096, VR_CHECK_READ, 93);
    use(check, A, SEGMENT + 4096, 8192, VR_CHECK_READ, 94); // what follows the block is free
    const struct vr_check_access moved = {.address = SEGMENT, .size_bytes = 8192, .effect = VR_CHECK_READ, .moves = true};
    vr_check_work(check, A, at(95), &moved, 1);
    assert_int_equal(found, 0);
    use_open(check, SEGMENT + 64, 4096, VR_CHECK_WRITE);
    assert_int_equal(found, 1);
    assert_int_equal(last.kind, VR_CHECK_OUT_OF_BOUNDS);
    assert_int_equal(last.block_bytes, 4096);
    assert_int_equal(last.later.stack, 77);
    vr_check_destroy(check);
    (void)state;
}

// A block of unknown size ends with its segment, so the end of the next segment is not its end.
static void segments_side_by_side(void **state) {
    struct vr_check *check = begin();
    const uint64_t next = SEGMENT + SIZE;
    vr_check_segment(check, next, SIZE, false, at(110));
    vr_check_block(check, SEGMENT, 0, false, at(111));
    vr_check_segment_end(check, next, SIZE, true, at(112));
    use(check, A, SEGMENT, SIZE, VR_CHECK_READ, 113);
    assert_int_equal(found, 0);
    vr_check_block(check, SEGMENT + 4096, 0, false, at(114)); // nor does it reach where a segment was
    vr_check_segment(check, next, SIZE, true, at(115));
    vr_check_segment_end(check, next, SIZE, true, at(116));
    use(check, A, SEGMENT + 4096, 64, VR_CHECK_READ, 117);
    assert_int_equal(found, 0);
    vr_check_destroy(check);
    (void)state;
}

// A program that allocates and frees for hours: what is kept of freed memory is bounded, and the latest is still known.
static void freed_memory_is_forgotten(void **state) {
    struct vr_check *check = begin();
    uint64_t address = 2 * (uint64_t)SEGMENT;
    for (int i = 0; i < 100000; i++, address += 4096) {
        vr_check_segment(check, address, 4096, false, at(100));
        vr_check_segment_end(check, address, 4096, true, at(101));
    }
    assert_true(vr_check_cells(check) < 20000);
    const struct vr_check_access access = {.address = address - 4096, .size_bytes = 8, .effect = VR_CHECK_READ};
    vr_check_refused(check, A, at(102), &access);
    assert_int_equal(found, 1);
    assert_int_equal(last.freed.stack, 101);
    vr_check_destroy(check);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_reused_too_early),
        cmocka_unit_test(a_block_reused_after_a_wait),
        cmocka_unit_test(parts_of_a_block),
        cmocka_unit_test(blocks_of_unknown_size),
        cmocka_unit_test(blocks_of_unknown_size_end_with_the_segment),
        cmocka_unit_test(the_size_of_a_block_decides),
        cmocka_unit_test(uses_after_a_free),
        cmocka_unit_test(frees_in_the_order_of_a_stream),
        cmocka_unit_test(segments_given_back),
        cmocka_unit_test(unknown_waits),
        cmocka_unit_test(streams_come_and_go),
        cmocka_unit_test(graphs_of_one_pool),
        cmocka_unit_test(graphs_that_lend),
        cmocka_unit_test(graphs_that_lend_twice),
        cmocka_unit_test(a_loan_that_was_taken_back),
        cmocka_unit_test(a_block_freed_in_a_later_capture),
        cmocka_unit_test(reads_of_what_nothing_wrote),
        cmocka_unit_test(accesses_that_leave_their_block),
        cmocka_unit_test(segments_side_by_side),
        cmocka_unit_test(freed_memory_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
