#include "history/stack_walk.h"

#include <stdatomic.h>

#include "os/os.h"

// --- rules by return address ---------------------------------------------------------------------------------------------------
//
// A set of four entries fills a cache line. An entry is the packed rule and the address xor the rule. Both are written without a lock, one
// after the other; because readers compare the address with their xor, they never get a rule of another address.

enum { SETS = 4096, WAYS = 4 };

static struct {
    struct {
        _Atomic uint64_t mixed;
        _Atomic uint64_t rule;
    } entry[WAYS];
} cache[SETS] __attribute__((aligned(64)));

// Bits of a packed rule, from bit 0: kind 4, place of the frame pointer 2, unsure 1, in link 1, generation 15, free 1, saved / 8 16 bits,
// `ra_words` 3 bits, offset / 8 21 bits.
#define UNSURE  ((uint64_t)1 << 6)
#define IN_LINK ((uint64_t)1 << 7)

#if defined(__aarch64__)
enum { LINKED = true, ADDRESS_BITS = 48 };
#else
enum { LINKED = false, ADDRESS_BITS = 47 };
#endif

static uint64_t pack_rule(struct vr_cfi_rule rule, uint32_t generation, bool unsure) {
    return (uint64_t)rule.kind | (uint64_t)rule.bp << 4 | (unsure ? UNSURE : 0) | (rule.in_link ? IN_LINK : 0) | (uint64_t)generation << 8 |
           ((uint64_t)(uint16_t)(rule.saved / 8)) << 24 | ((uint64_t)(uint32_t)rule.ra_words & 7) << 40 |
           ((uint64_t)(uint32_t)(rule.offset / 8) & 0x1fffff) << 43;
}
VR_INLINE unsigned rule_kind(uint64_t rule) { return rule & 15; }
VR_INLINE unsigned rule_bp(uint64_t rule) { return rule >> 4 & 3; }
VR_INLINE uint32_t rule_generation(uint64_t rule) { return (uint32_t)(rule >> 8) & 0x7fff; }
VR_INLINE int64_t rule_saved(uint64_t rule) { return (int64_t)(int16_t)(rule >> 24) * 8; }
VR_INLINE int64_t rule_offset(uint64_t rule) { return ((int64_t)rule >> 43) * 8; }
// Returns the distance from the CFA to the return address.
VR_INLINE int64_t rule_return(uint64_t rule) { return LINKED ? rule_saved(rule) + ((int64_t)(rule << 21) >> 61) * 8 : -8; }

VR_INLINE size_t set_of(uint64_t pc) { return (size_t)(pc * 0x9e3779b97f4a7c15u >> 52); }

// Incremented when forgetting rules begins and ends: a walk during which it changes may have used outdated rules.
static _Atomic uint64_t forgotten;

// Needed even if something was only loaded: code may now be where there was no module. A walk that begins during this sees the second
// increment, or that the list of modules is out of date.
static void forget_rules(void) {
    atomic_fetch_add_explicit(&forgotten, 1, memory_order_acq_rel);
    for (size_t set = 0; set < SETS; set++) {
        for (size_t way = 0; way < WAYS; way++) {
            atomic_store_explicit(&cache[set].entry[way].mixed, 0, memory_order_relaxed);
            atomic_store_explicit(&cache[set].entry[way].rule, 0, memory_order_relaxed);
        }
    }
    atomic_fetch_add_explicit(&forgotten, 1, memory_order_release);
}

struct question {
    uint64_t pc;
    const struct vr_code_module *module;
    struct vr_cfi_rule rule;
};

// An aarch64 signal handler returns to an address that the kernel chooses: in its vDSO, whose unwind tables begin an instruction earlier or
// are missing, or, under an emulated kernel, in no module at all. So its two instructions, `mov x8, #139; svc #0`, are recognised, as in
// GCC's own unwinder.
static bool is_signal_return(uint64_t pc) {
    uint32_t code[2];
    if (!LINKED || (pc & 3) != 0 || !vr_os_is_mapped(pc, pc + sizeof code)) return false;
    memcpy(code, (const void *)(uintptr_t)pc, sizeof code);
    return code[0] == 0xd2801168 && code[1] == 0xd4000001;
}

static void answer_walk(void *context) {
    struct question *question = context;
    question->rule = vr_cfi_find(&question->module->tables, question->pc - 1);
}

struct new_rule {
    uint64_t pc, rule;
};

static void make_new_rule(void *argument) {
    struct new_rule *made = argument;
    const uint64_t pc = made->pc;
    struct question question = {.pc = pc, .rule = {.kind = VR_CFI_CHAIN}};
    vr_modules_lock();
    vr_modules_refresh_locked(forget_rules);
    question.module = vr_modules_find_locked(pc - 1);
    const bool signal = is_signal_return(pc);
    if (signal) question.rule.kind = VR_CFI_SIGNAL;
    const bool kept = signal || question.module == NULL || vr_modules_hold_locked(answer_walk, &question);
    const bool unsure = question.module == NULL || !question.module->lasting;
    const uint64_t rule = pack_rule(question.rule, question.module == NULL ? 0 : question.module->generation, unsure);
    if (kept) {
        const size_t set = set_of(pc);
        size_t way = (size_t)(pc >> 3) % WAYS; // a full set loses one of its entries
        for (size_t i = WAYS; i-- > 0;) {      // prefer the first free entry, which is probed first
            if (atomic_load_explicit(&cache[set].entry[i].rule, memory_order_relaxed) == 0) way = i;
        }
        atomic_store_explicit(&cache[set].entry[way].rule, rule, memory_order_relaxed);
        atomic_store_explicit(&cache[set].entry[way].mixed, pc ^ rule, memory_order_relaxed);
    }
    vr_modules_unlock();
    made->rule = rule;
}

// Makes the rule for a return address and caches it. Never returns 0. Rare, and deep on the stack.
VR_NOINLINE static uint64_t make_rule(uint64_t pc) {
    struct new_rule made = {.pc = pc};
    vr_os_on_spare_stack(make_new_rule, &made);
    return made.rule;
}

VR_INLINE uint64_t find_rule(uint64_t pc) {
    const size_t set = set_of(pc);
    for (size_t way = 0; way < WAYS; way++) {
        const uint64_t rule = atomic_load_explicit(&cache[set].entry[way].rule, memory_order_relaxed);
        if ((atomic_load_explicit(&cache[set].entry[way].mixed, memory_order_relaxed) ^ rule) == pc) return rule;
    }
    return make_rule(pc);
}

bool vr_walk_outdated(const struct vr_walk *walk) {
    const bool current = vr_modules_current(); // first, so that the effects of the update are visible
    if (walk->epoch != atomic_load_explicit(&forgotten, memory_order_acquire)) return true;
    if (VR_LIKELY(current)) return false;
    vr_modules_lock();
    vr_modules_refresh_locked(forget_rules); // unless another thread already did
    vr_modules_unlock();
    return true;
}

// --- the walk ------------------------------------------------------------------------------------------------------------------

// The stack that the thread was last seen on, and some earlier ones: coroutines return to theirs.
enum { EARLIER = 4 };
struct stack_range {
    uint64_t low, high;
};
static _Thread_local struct stack_range stack, earlier[EARLIER];
static _Thread_local unsigned next_earlier;

VR_INLINE bool is_in(const struct stack_range *range, uint64_t address) { return address - range->low < range->high - range->low; }

// An earlier stack may be gone, with a smaller mapping in its place.
VR_NOINLINE static bool find_stack(uint64_t sp) {
    struct stack_range found = {0, 0};
    size_t at = 0;
    while (at < EARLIER && !is_in(&earlier[at], sp)) at++;
    if (at < EARLIER && vr_os_is_mapped(sp, earlier[at].high))
        found = earlier[at];
    else if (!vr_os_stack_bounds(sp, &found.low, &found.high))
        return false;
    if (at == EARLIER) at = next_earlier++ % EARLIER;
    earlier[at] = stack;
    stack = found;
    return true;
}

bool vr_walk_begin(struct vr_walk *walk, uint64_t pc, uint64_t sp, uint64_t bp) {
    if (VR_UNLIKELY(!is_in(&stack, sp)) && !find_stack(sp)) return false;
    *walk = (struct vr_walk){
        .pc = pc, .sp = sp, .bp = bp, .high = stack.high, .epoch = atomic_load_explicit(&forgotten, memory_order_acquire), .base = sp};
    return true;
}

VR_UNSANITIZED VR_INLINE uint64_t load_word(uint64_t address) { return *(const volatile uint64_t *)(uintptr_t)address; }

// Loads a word that decides the course of the walk.
VR_UNSANITIZED VR_INLINE uint64_t look_up_word(const struct vr_walk *walk, uint64_t address) {
    const uint64_t word = load_word(address);
    if (walk->memo != NULL) vr_memo_note(walk->memo, walk->base, address, word);
    return word;
}

// Notes that the walk depends on the frame pointer.
VR_INLINE void use_bp(struct vr_memo *memo, const struct vr_walk *walk, uint64_t bp, uint64_t bp_at) {
    if (memo == NULL) return;
    if (bp_at == 0)
        vr_memo_need_bp(memo);
    else
        vr_memo_note(memo, walk->base, bp_at, bp);
}

VR_INLINE bool is_readable(const struct vr_walk *walk, uint64_t address) {
    return address >= walk->sp && address <= walk->high - 8 && (address & 7) == 0;
}

// Leaves the frame that the kernel made for a signal handler: `sp` is at its struct ucontext (x86-64), or at the siginfo of 128 bytes
// before it (aarch64). The interrupted instruction does not follow a call, so its address is raised by one to look like a return address.
VR_UNSANITIZED VR_NOINLINE static bool leave_signal(struct vr_walk *walk, uint64_t *cfa) {
#if defined(__aarch64__)
    enum { REGISTERS = 128 + 176 + 8 }; // regs[31], sp, pc of its struct sigcontext
    enum { BP = REGISTERS + 29 * 8, LINK = REGISTERS + 30 * 8, SP = REGISTERS + 31 * 8, PC = REGISTERS + 32 * 8 };
#else
    enum { REGISTERS = 40, BP = REGISTERS + 10 * 8, LINK = BP, SP = REGISTERS + 15 * 8, PC = REGISTERS + 16 * 8 };
#endif
    if (walk->memo != NULL) vr_memo_spoil(walk->memo); // the walk may continue on another stack
    if (!is_readable(walk, walk->sp) || walk->high - walk->sp < PC + 8) return false;
    const uint64_t sp = load_word(walk->sp + SP);
    walk->bp = load_word(walk->sp + BP);
    walk->link = LINKED ? load_word(walk->sp + LINK) : 0;
    walk->pc = load_word(walk->sp + PC) + 1;
    walk->low = false;
    if (!is_in(&stack, sp) && !find_stack(sp)) return false;
    *cfa = walk->sp + PC + 8;
    walk->high = stack.high;
    walk->sp = sp;
    return true;
}

VR_UNSANITIZED VR_INLINE bool find_cfa(struct vr_walk *walk, uint64_t rule, uint64_t *cfa) {
    const uint64_t offset = (uint64_t)rule_offset(rule);
    const bool by_sp = rule_kind(rule) == VR_CFI_SP || rule_kind(rule) == VR_CFI_DEREF_SP;
    if (!by_sp || rule_bp(rule) == VR_CFI_AT_BP || (LINKED && walk->low)) use_bp(walk->memo, walk, walk->bp, walk->bp_at);
    switch (rule_kind(rule)) {
    case VR_CFI_SP:
        *cfa = walk->sp + offset;
        if (!LINKED || !walk->low) break;
        // In a function with a frame pointer, it points to where the caller's was saved.
        if (rule_bp(rule) != VR_CFI_AT_CFA) return false;
        *cfa = walk->bp - (uint64_t)rule_saved(rule);
        break;
    case VR_CFI_BP: *cfa = walk->bp + offset; break;
    case VR_CFI_DEREF_SP:
        if (!is_readable(walk, walk->sp + offset)) return false;
        *cfa = look_up_word(walk, walk->sp + offset);
        break;
    case VR_CFI_DEREF_BP:
        if (!is_readable(walk, walk->bp + offset)) return false;
        *cfa = look_up_word(walk, walk->bp + offset);
        break;
    case VR_CFI_CHAIN: *cfa = walk->bp + 16; break;
    default: return false;
    }
    const uint64_t least = LINKED && (rule & IN_LINK) != 0 ? walk->sp : walk->sp + 1; // leaf functions may have no frame
    return *cfa >= least && *cfa <= walk->high && (*cfa & 7) == 0;
}

// Returns the return address of the frame's function, or 0 if unknown.
VR_UNSANITIZED VR_INLINE uint64_t find_return(const struct vr_walk *walk, uint64_t rule, uint64_t cfa) {
    if (LINKED && (rule & IN_LINK) != 0) return walk->link;
    const uint64_t at = cfa + (uint64_t)(rule_kind(rule) == VR_CFI_CHAIN ? -8 : rule_return(rule));
    return is_readable(walk, at) ? look_up_word(walk, at) : 0;
}

// Removes the signature from an aarch64 return address, in the bits above the address. Only the processor knows which bits those are: with
// 16 KiB pages an address may have 47 bits, with some kernels 39. `hint #7` is xpaclri, a no-op on processors without signatures.
VR_INLINE uint64_t plain_address(uint64_t pc) {
#if defined(__aarch64__)
    register uint64_t link __asm__("x30") = pc;
    __asm__("hint #7" : "+r"(link));
    return link;
#else
    return pc;
#endif
}
VR_INLINE bool is_code(uint64_t pc) { return pc != 0 && pc >> ADDRESS_BITS == 0; }

VR_UNSANITIZED VR_INLINE bool find_bp(struct vr_walk *walk, uint64_t rule, uint64_t cfa) {
    uint64_t at;
    if (rule_kind(rule) == VR_CFI_CHAIN) {
        at = cfa - 16;
    } else if (rule_bp(rule) == VR_CFI_AT_CFA) {
        at = cfa + (uint64_t)rule_saved(rule);
    } else if (rule_bp(rule) == VR_CFI_AT_BP) {
        at = walk->bp + (uint64_t)rule_saved(rule);
    } else {
        return true;
    }
    if (!is_readable(walk, at)) return false;
    walk->bp = load_word(at);
    walk->bp_at = at;
    return true;
}

VR_UNSANITIZED bool vr_walk_next(struct vr_walk *walk, uint64_t *word, uint64_t *cfa) {
    const uint64_t rule = find_rule(walk->pc);
    *word = vr_code_word(vr_code_address(walk->pc), rule_generation(rule));
    *cfa = walk->sp;
    if ((rule & UNSURE) != 0) walk->unsure = true;
    if (VR_UNLIKELY(rule_kind(rule) == VR_CFI_SIGNAL)) return leave_signal(walk, cfa);
    uint64_t end;
    if (!find_cfa(walk, rule, &end)) return false;
    const uint64_t back = find_return(walk, rule, end);
    if (back == 0 || !find_bp(walk, rule, end)) return false;
    walk->pc = plain_address(back);
    walk->sp = end;
    walk->link = 0;
    walk->low = LINKED && rule_kind(rule) == VR_CFI_CHAIN; // the caller's frame begins somewhere above
    *cfa = end;
    return is_code(walk->pc);
}

bool vr_walk_leave(struct vr_walk *walk, uint64_t address) {
    uint64_t word, cfa;
    do {
        if (!vr_walk_next(walk, &word, &cfa)) return false;
    } while (walk->sp <= address);
    return true;
}

// vr_walk_next() for many frames, with the changing state in registers. Frames other than the two common forms are left to vr_walk_next().
VR_UNSANITIZED size_t vr_walk_run(struct vr_walk *walk, uint64_t *words, size_t limit, uint64_t *hash) {
    uint64_t pc = walk->pc, sp = walk->sp, bp = walk->bp, bp_at = walk->bp_at, all = 0, sum = *hash, cfa;
    const uint64_t high = walk->high;
    size_t count = 0;
    bool more = true;
    while (more && count < limit) {
        const uint64_t rule = find_rule(pc);
        const unsigned kind = rule_kind(rule);
        const uint64_t end = (kind == VR_CFI_SP ? sp : bp) + (uint64_t)rule_offset(rule);
        const bool plain = !LINKED || ((rule & IN_LINK) == 0 && !walk->low);
        const bool common = (kind == VR_CFI_SP || kind == VR_CFI_BP) && rule_bp(rule) != VR_CFI_AT_BP && plain;
        if (VR_UNLIKELY(!common || high != walk->high)) {
            walk->pc = pc;
            walk->sp = sp;
            walk->bp = bp;
            walk->bp_at = bp_at;
            more = vr_walk_next(walk, &words[count], &cfa);
            sum = vr_stack_hash(sum, words[count++]);
            pc = walk->pc;
            sp = walk->sp;
            bp = walk->bp;
            bp_at = walk->bp_at;
            continue;
        }
        all |= rule;
        if (kind == VR_CFI_BP) use_bp(walk->memo, walk, bp, bp_at);
        words[count] = vr_code_word(pc, rule_generation(rule));
        sum = vr_stack_hash(sum, words[count++]);
        if (end <= sp || end > high || (end & 7) != 0) break;
        if (rule_bp(rule) == VR_CFI_AT_CFA) {
            const uint64_t at = end + (uint64_t)rule_saved(rule); // a multiple of 8, as both terms are
            if (at < sp || at > high - 8) break;
            bp = load_word(at);
            bp_at = at;
        }
        const uint64_t back = end + (uint64_t)rule_return(rule);
        if (LINKED && (back < sp || back > high - 8)) break;
        if (LINKED) walk->link = 0;
        pc = plain_address(look_up_word(walk, back));
        sp = end;
        more = is_code(pc);
    }
    if ((all & UNSURE) != 0) walk->unsure = true;
    *hash = sum;
    return count;
}
