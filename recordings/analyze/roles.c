#include "analyze/roles.h"

#include "analyze/report_parts.h"

// The state of finding roles. If only Python frames are recorded, threads without Python frames have empty stacks.
struct role_finding {
    const struct vr_view *view;
    const struct vr_lifetimes *lifetimes;
    struct vr_roles roles;
    struct vr_map expect; // size -> number of gradients of it in one step
    bool python_only;     // most stacks have Python frames only
    bool models;          // there is evidence that a model is trained or queried
    bool trains;          // stacks show a backward pass or an optimizer's step
    bool has_forward, has_backward, has_optimizer, has_state;
    bool ends_in_oom;
    size_t of_workspace_size; // number of allocations of LARGE_WORKSPACE that stay
};

// Found only in programs with a model. Any program may have constructors, a file named dataset.py, or cuBLAS workspaces.
#define MARKS_OF_TRAINING                                                                                                                  \
    ((uint32_t)VR_MARK_BACKWARD | VR_MARK_ENGINE | VR_MARK_ACCUMULATE | VR_MARK_RECOMPUTE | VR_MARK_OPTIMIZER | VR_MARK_STATE |            \
     VR_MARK_REDUCE)
#define MARKS_OF_MODEL (MARKS_OF_TRAINING | VR_MARK_FORWARD | VR_MARK_LOAD | VR_MARK_KV)

// Returns a row's marks. If no frames were recorded, a row for which the program names a module is made in a forward pass.
static uint32_t marks_as_recorded(struct role_finding *finding, size_t row) {
    const struct vr_role_notes *notes = &finding->roles.notes;
    const uint32_t marks = vr_role_marks_of(&finding->roles.marks, finding->lifetimes->stack[row]);
    const bool in_module = notes->named[row] != 0 && notes->role[row] == VRAM_ROLE_COUNT && (marks & VR_MARK_FRAMES) == 0;
    return in_module ? marks | VR_MARK_FORWARD : marks;
}

// Returns a row's marks; a constructor makes parameters only if there is a model.
static uint32_t marks_of(struct role_finding *finding, size_t row) {
    const uint32_t marks = marks_as_recorded(finding, row);
    return finding->models ? marks : marks & ~(uint32_t)VR_MARK_BUILD;
}

// Returns the pass of a row whose stack shows none: a loss is computed after the forward pass, data are prepared before it.
static enum vr_role_pass pass_outside(const struct role_finding *finding, uint32_t marks, enum vr_role_pass before) {
    if ((marks & VR_MARK_FRAMES) == 0) {
        const bool computes = before == VR_PASS_FORWARD || before == VR_PASS_BACKWARD || (before == VR_PASS_INPUT && !finding->has_forward);
        return finding->models && finding->python_only && computes ? VR_PASS_BACKWARD : VR_PASS_IDLE;
    }
    if ((marks & (VR_MARK_TEMPORARY | VR_MARK_COMMUNICATION)) != 0) return VR_PASS_IDLE;
    if ((marks & VR_MARK_MADE) != 0) return VR_PASS_INPUT;
    if (!finding->models) return VR_PASS_IDLE;
    if (before == VR_PASS_FORWARD) return VR_PASS_FORWARD;
    if (!finding->has_forward && (marks & VR_MARK_NATIVE) != 0) return finding->trains ? VR_PASS_FORWARD : VR_PASS_IDLE;
    return before == VR_PASS_BACKWARD ? VR_PASS_IDLE : VR_PASS_INPUT;
}

// Finds the pass that a stack shows; returns false if it shows none.
static bool pass_by_marks(uint32_t marks, enum vr_role_pass *pass) {
    static const struct {
        uint32_t marks;
        enum vr_role_pass pass;
    } order[] = {{VR_MARK_OPTIMIZER, VR_PASS_OPTIMIZER}, {VR_MARK_BACKWARD | VR_MARK_ENGINE, VR_PASS_BACKWARD},
                 {VR_MARK_FORWARD, VR_PASS_FORWARD},     {VR_MARK_LOAD, VR_PASS_LOAD},
                 {VR_MARK_INPUT, VR_PASS_INPUT},         {VR_MARK_BUILD, VR_PASS_LOAD}};
    for (size_t i = 0; i < VR_COUNT_OF(order); i++) {
        if ((marks & order[i].marks) == 0) continue;
        *pass = order[i].pass;
        return true;
    }
    return false;
}

// Looks for evidence of a model. If only Python frames were recorded, the backward pass's thread has no frames; `vram run` fails to unwind
// some stacks of any program.
static void look_for_model(struct role_finding *finding) {
    const struct vr_lifetimes *lifetimes = finding->lifetimes;
    size_t python = 0, native = 0, bare = 0;
    uint32_t all = 0;
    for (size_t row = 0; row < lifetimes->count; row++) {
        const uint32_t marks = marks_as_recorded(finding, row);
        const uint8_t stated = finding->roles.notes.role[row];
        python += (marks & (VR_MARK_PYTHON | VR_MARK_NATIVE)) == VR_MARK_PYTHON;
        native += (marks & VR_MARK_NATIVE) != 0;
        bare += row >= lifetimes->start_count && (marks & VR_MARK_FRAMES) == 0;
        all |= marks;
        finding->models = finding->models || (stated != VRAM_ROLE_COUNT && stated != VRAM_ROLE_UNKNOWN);
    }
    finding->python_only = python > native;
    finding->roles.python = (all & VR_MARK_PYTHON) != 0;
    finding->trains = (all & MARKS_OF_TRAINING) != 0;
    finding->models =
        finding->models || (all & MARKS_OF_MODEL) != 0 || (bare != 0 && finding->python_only && !vr_is_whole_program(finding->view));
}

static void look_over(struct role_finding *finding) {
    const struct vr_lifetimes *lifetimes = finding->lifetimes;
    const struct vr_history *history = finding->view->history;
    look_for_model(finding);
    for (size_t row = 0; row < lifetimes->count && !finding->has_forward; row++) {
        enum vr_role_pass pass = VR_PASS_IDLE;
        finding->has_forward = pass_by_marks(marks_of(finding, row), &pass) && pass == VR_PASS_FORWARD;
    }
    for (size_t i = history->count; i > 0 && history->count - i < 64 && !finding->ends_in_oom; i--)
        finding->ends_in_oom = history->action[i - 1] == VR_ACTION_OOM;
}

#define LARGE_WORKSPACE ((uint64_t)32 << 20)
enum { MOST_WORKSPACES = 8 };

static void find_passes(struct role_finding *finding) {
    const struct vr_lifetimes *lifetimes = finding->lifetimes;
    enum vr_role_pass before = VR_PASS_IDLE;
    for (size_t row = 0; row < lifetimes->count; row++) {
        const uint32_t marks = marks_of(finding, row);
        const bool in_history = row >= lifetimes->start_count;
        enum vr_role_pass pass = VR_PASS_IDLE;
        const bool clear = pass_by_marks(marks, &pass);
        if (!clear && (in_history || (marks & VR_MARK_FRAMES) != 0)) pass = pass_outside(finding, marks, before);
        finding->roles.pass[row] = (uint8_t)pass;
        finding->of_workspace_size += lifetimes->size_bytes[row] == LARGE_WORKSPACE && lifetimes->death[row] == VR_NEVER;
        if (!in_history || (marks & VR_MARK_COMMUNICATION) != 0) continue;
        // An allocation by name during a forward pass does not end it.
        if (clear || (pass != VR_PASS_IDLE && before != VR_PASS_FORWARD)) before = pass;
        finding->has_backward = finding->has_backward || pass == VR_PASS_BACKWARD;
        finding->has_optimizer = finding->has_optimizer || pass == VR_PASS_OPTIMIZER;
    }
}

// For a row: the births of the next rows of each kind. Filled by a backward walk.
struct passes_ahead {
    uint32_t next[VR_PASS_COUNT]; // by pass
    uint32_t plain_backward;      // backward pass, except recomputations
    uint32_t forward_of_next;     // first forward pass after the next backward pass: that of the next step
    uint32_t backward_of_next;    // the backward pass after that
    uint32_t last_of_pass;        // last birth of the current backward pass
    enum vr_role_pass following;  // pass of the next row
    uint32_t birth;               // birth of the next row
};

static bool finding_covers(const struct role_finding *finding, size_t row, uint32_t event) {
    return event != VR_NEVER && finding->lifetimes->death[row] > event;
}

static uint32_t next_outside(const struct passes_ahead *ahead, enum vr_role_pass pass) {
    uint32_t first = VR_NEVER;
    for (unsigned p = VR_PASS_FORWARD; p < VR_PASS_COUNT; p++) {
        if (p != (unsigned)pass && ahead->next[p] < first) first = ahead->next[p];
    }
    return first;
}

// Sizes of cuBLAS workspaces as PyTorch requests them: 8 of 2 x 4 MiB and 8 x 16 KiB, or 32 MiB since compute capability 9.0
// (CUBLAS_WORKSPACE_CONFIG in PyTorch's documentation).
#define OWN_WORKSPACE ((uint64_t)8519680) // a size that nothing else has; PyTorch 2.15 allocates and frees it for each product
// Returns whether a row of this size may be a library's workspace. Each library has one per stream, so a size that occurs more often is a
// coincidence.
static bool is_workspace_size(const struct role_finding *finding, uint64_t bytes) {
    return bytes == OWN_WORKSPACE || (bytes == LARGE_WORKSPACE && finding->of_workspace_size <= MOST_WORKSPACES);
}

static enum vram_role role_in_optimizer(const struct role_finding *finding, size_t row, uint32_t marks, const struct passes_ahead *ahead) {
    if ((marks & VR_MARK_STATE) != 0) return VRAM_ROLE_OPTIMIZER_STATE;
    const uint32_t outside = next_outside(ahead, VR_PASS_OPTIMIZER);
    if (outside != VR_NEVER) return finding_covers(finding, row, outside) ? VRAM_ROLE_OPTIMIZER_STATE : VRAM_ROLE_TEMPORARIES;
    const bool stays = finding->lifetimes->death[row] == VR_NEVER && !finding->ends_in_oom;
    return stays ? VRAM_ROLE_OPTIMIZER_STATE : VRAM_ROLE_TEMPORARIES;
}

// Returns the role of a row made in the backward pass. A gradient is live at the end of that pass. If the history ends within one, its size
// decides: that of an earlier gradient, or of a parameter.
static enum vram_role role_in_backward(const struct role_finding *finding, size_t row, uint32_t marks, const struct passes_ahead *ahead) {
    const struct vr_lifetimes *lifetimes = finding->lifetimes;
    const uint64_t bytes = lifetimes->size_bytes[row];
    if ((marks & VR_MARK_RECOMPUTE) != 0)
        return finding_covers(finding, row, ahead->plain_backward) || lifetimes->death[row] == VR_NEVER ? VRAM_ROLE_RECOMPUTED
                                                                                                        : VRAM_ROLE_TEMPORARIES;
    const bool stays = lifetimes->death[row] == VR_NEVER;
    const bool plain = (marks & VR_MARK_NATIVE) == 0;
    if (plain && (bytes == OWN_WORKSPACE || (stays && is_workspace_size(finding, bytes) && ahead->backward_of_next != VR_NEVER)))
        return VRAM_ROLE_WORKSPACES;
    if ((marks & VR_MARK_ACCUMULATE) != 0) return VRAM_ROLE_GRADIENTS;
    const uint32_t outside = next_outside(ahead, VR_PASS_BACKWARD);
    if (finding_covers(finding, row, outside)) return VRAM_ROLE_GRADIENTS;
    if (outside == VR_NEVER && stays)
        return !finding->ends_in_oom || vr_map_get(&finding->expect, bytes) != 0 ? VRAM_ROLE_GRADIENTS : VRAM_ROLE_TEMPORARIES;
    return finding_covers(finding, row, ahead->last_of_pass) ? VRAM_ROLE_GRADIENTS : VRAM_ROLE_TEMPORARIES;
}

static enum vram_role role_in_forward(const struct role_finding *finding, size_t row, uint32_t marks, const struct passes_ahead *ahead) {
    const struct vr_lifetimes *lifetimes = finding->lifetimes;
    const uint64_t bytes = lifetimes->size_bytes[row];
    const bool stays = lifetimes->death[row] == VR_NEVER, sees_backward = finding_covers(finding, row, ahead->next[VR_PASS_BACKWARD]);
    const bool plain = (marks & VR_MARK_NATIVE) == 0;
    if (plain && (bytes == OWN_WORKSPACE || (stays && is_workspace_size(finding, bytes) && ahead->forward_of_next != VR_NEVER)))
        return VRAM_ROLE_WORKSPACES;
    if ((marks & VR_MARK_KV) != 0 && !sees_backward)
        return stays || finding_covers(finding, row, ahead->next[VR_PASS_FORWARD]) ? VRAM_ROLE_KV_CACHE : VRAM_ROLE_TEMPORARIES;
    if (sees_backward || stays) return VRAM_ROLE_ACTIVATIONS;
    return ahead->next[VR_PASS_BACKWARD] == VR_NEVER ? VRAM_ROLE_ACTIVATIONS : VRAM_ROLE_TEMPORARIES;
}

static bool sees_any(const struct role_finding *finding, size_t row, const struct passes_ahead *ahead) {
    return finding->lifetimes->death[row] == VR_NEVER || finding_covers(finding, row, ahead->next[VR_PASS_FORWARD]) ||
           finding_covers(finding, row, ahead->next[VR_PASS_BACKWARD]) || finding_covers(finding, row, ahead->next[VR_PASS_OPTIMIZER]);
}

// Returns the role of a tensor made by name, or computed outside of modules, that is live in no later pass or only in the backward pass.
static enum vram_role role_of_passing(const struct role_finding *finding, size_t row, uint32_t marks, const struct passes_ahead *ahead) {
    const uint32_t backward = ahead->next[VR_PASS_BACKWARD];
    if (!sees_any(finding, row, ahead)) {
        // A result may be allocated before the pass that computes it; that pass is not in a module.
        const bool used = (marks & VR_MARK_MADE) != 0 && !finding->has_backward && finding_covers(finding, row, ahead->birth);
        if (!used) return VRAM_ROLE_TEMPORARIES;
        return finding->has_forward ? VRAM_ROLE_ACTIVATIONS : VRAM_ROLE_INPUT;
    }
    const bool consumed = finding_covers(finding, row, backward) && !finding_covers(finding, row, ahead->last_of_pass);
    return !finding->has_forward && consumed ? VRAM_ROLE_ACTIVATIONS : VRAM_ROLE_INPUT;
}

// Returns the role of an allocation made while loading. A temporary copy is freed before a pass begins; without passes, before the next
// allocation.
static enum vram_role role_of_loaded(const struct role_finding *finding, size_t row, const struct passes_ahead *ahead) {
    const bool passes = next_outside(ahead, VR_PASS_LOAD) != VR_NEVER;
    const bool lives = sees_any(finding, row, ahead) || (!passes && finding_covers(finding, row, ahead->birth));
    return lives ? VRAM_ROLE_PARAMETERS : VRAM_ROLE_TEMPORARIES;
}

static enum vram_role role_outside(const struct role_finding *finding, size_t row, uint32_t marks, const struct passes_ahead *ahead) {
    const bool stays = finding->lifetimes->death[row] == VR_NEVER;
    switch ((enum vr_role_pass)finding->roles.pass[row]) {
    case VR_PASS_LOAD: return role_of_loaded(finding, row, ahead);
    case VR_PASS_INPUT: return role_of_passing(finding, row, marks, ahead);
    default: break;
    }
    const bool runs = finding->has_forward || finding->has_backward || finding->has_optimizer;
    if ((marks & VR_MARK_FRAMES) == 0 || !runs) return VRAM_ROLE_UNKNOWN;
    // Allocated after a backward pass: the next batch, or a tensor used on gradients.
    if ((marks & VR_MARK_TEMPORARY) == 0 && finding_covers(finding, row, ahead->next[VR_PASS_FORWARD])) return VRAM_ROLE_INPUT;
    return stays && (marks & VR_MARK_TEMPORARY) == 0 ? VRAM_ROLE_UNKNOWN : VRAM_ROLE_TEMPORARIES;
}

// Returns the role of an allocation made in the history, or with a stack.
static enum vram_role role_of(const struct role_finding *finding, size_t row, uint32_t marks, const struct passes_ahead *ahead) {
    if ((marks & VR_MARK_WORKSPACE) != 0) return VRAM_ROLE_WORKSPACES;
    if ((marks & VR_MARK_TEMPORARY) != 0 && finding->lifetimes->death[row] != VR_NEVER) return VRAM_ROLE_TEMPORARIES;
    if ((marks & VR_MARK_REDUCE) != 0 && finding_covers(finding, row, next_outside(ahead, VR_PASS_BACKWARD))) return VRAM_ROLE_GRADIENTS;
    if ((marks & VR_MARK_COMMUNICATION) != 0) return (marks & VR_MARK_INPUT) != 0 ? VRAM_ROLE_INPUT : VRAM_ROLE_COMMUNICATION;
    if ((marks & VR_MARK_KV) != 0 && (marks & (VR_MARK_FORWARD | VR_MARK_BACKWARD)) == 0) return VRAM_ROLE_KV_CACHE;
    switch ((enum vr_role_pass)finding->roles.pass[row]) {
    case VR_PASS_OPTIMIZER: return role_in_optimizer(finding, row, marks, ahead);
    case VR_PASS_BACKWARD: return role_in_backward(finding, row, marks, ahead);
    case VR_PASS_FORWARD: return role_in_forward(finding, row, marks, ahead);
    default: return role_outside(finding, row, marks, ahead);
    }
}

static void pass_by(struct passes_ahead *ahead, enum vr_role_pass pass, uint32_t marks, uint32_t event) {
    ahead->birth = event;
    if (pass == VR_PASS_BACKWARD && ahead->following != VR_PASS_BACKWARD) {
        ahead->last_of_pass = event;
        ahead->backward_of_next = ahead->next[VR_PASS_BACKWARD];
        ahead->forward_of_next = ahead->next[VR_PASS_FORWARD];
    }
    if (pass == VR_PASS_BACKWARD && (marks & VR_MARK_RECOMPUTE) == 0) ahead->plain_backward = event;
    ahead->next[pass] = event;
    if (pass != VR_PASS_IDLE) ahead->following = pass;
}

static const struct passes_ahead nothing_ahead = {.next = {VR_NEVER, VR_NEVER, VR_NEVER, VR_NEVER, VR_NEVER, VR_NEVER},
                                                  .plain_backward = VR_NEVER,
                                                  .forward_of_next = VR_NEVER,
                                                  .backward_of_next = VR_NEVER,
                                                  .last_of_pass = VR_NEVER,
                                                  .birth = VR_NEVER};

// Sets *role to the role stated by the program or the user; VRAM_ROLE_COUNT if none exists.
static enum vram_status stated_role(const struct role_finding *finding, struct vr_role_rules *rules, size_t row, enum vram_role *role) {
    *role = VRAM_ROLE_COUNT;
    if (rules != NULL) VR_TRY(vr_role_rules_find(rules, finding->view->model, finding->lifetimes->stack[row], role));
    if (*role == VRAM_ROLE_COUNT) *role = (enum vram_role)finding->roles.notes.role[row];
    return VRAM_OK;
}

// Assigns roles from the last birth to the first; rows from before the history come last, when all of the history is known.
static enum vram_status give_roles(struct role_finding *finding, struct vr_role_rules *rules) {
    const struct vr_lifetimes *lifetimes = finding->lifetimes;
    struct passes_ahead ahead = nothing_ahead;
    for (size_t row = lifetimes->count; row-- > 0;) {
        const uint32_t marks = marks_of(finding, row);
        enum vram_role role;
        VR_TRY(stated_role(finding, rules, row, &role));
        if (role == VRAM_ROLE_COUNT) role = role_of(finding, row, marks, &ahead);
        finding->roles.role[row] = (uint8_t)role;
        finding->has_state = finding->has_state || role == VRAM_ROLE_OPTIMIZER_STATE;
        if (row >= lifetimes->start_count && (marks & VR_MARK_COMMUNICATION) == 0)
            pass_by(&ahead, (enum vr_role_pass)finding->roles.pass[row], marks, lifetimes->birth[row]);
    }
    return VRAM_OK;
}

// --- parameters that the program's own optimizer replaces in every step ------------------------------------------------------------------

// With `p.data = p.data - ...`, the new parameter is made while the old one is live. So when a parameter is freed in an optimizer's step,
// the newest block of its size made by the optimizer becomes the parameter; it may be replaced again in the same step. Visits rows in the
// order of birth, deaths in the order of events.
static enum vram_status follow_replaced(struct role_finding *finding) {
    const struct vr_lifetimes *lifetimes = finding->lifetimes;
    uint8_t *role = finding->roles.role;
    uint32_t *dies = calloc(finding->view->history->count + 1, sizeof *dies); // by event: 1 + row
    struct vr_map newest = {0};                                               // size -> 1 + row
    enum vram_status status = dies == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    uint32_t event = 0;
    enum vr_role_pass pass = VR_PASS_IDLE;
    for (size_t row = 0; row < lifetimes->count && status == VRAM_OK; row++) {
        const uint32_t until = row < lifetimes->start_count ? 0 : lifetimes->birth[row];
        for (; event < until; event++) {
            if (dies[event] == 0 || pass != VR_PASS_OPTIMIZER || role[dies[event] - 1] != VRAM_ROLE_PARAMETERS) continue;
            const uint64_t heir = vr_map_get(&newest, lifetimes->size_bytes[dies[event] - 1]);
            if (heir != 0 && lifetimes->death[heir - 1] > event) role[heir - 1] = VRAM_ROLE_PARAMETERS;
        }
        if (lifetimes->death[row] != VR_NEVER) dies[lifetimes->death[row]] = (uint32_t)row + 1;
        if (row < lifetimes->start_count || finding->roles.pass[row] == VR_PASS_IDLE) continue;
        pass = (enum vr_role_pass)finding->roles.pass[row];
        if (pass == VR_PASS_OPTIMIZER) status = vr_map_set(&newest, lifetimes->size_bytes[row], row + 1);
    }
    vr_map_release(&newest);
    free(dies);
    return status;
}

// --- allocations from before the history, without stacks ---------------------------------------------------------------------------------

// Counts, by size, the most gradients live at once.
static enum vram_status expect_gradients(struct role_finding *finding) {
    const struct vr_lifetimes *lifetimes = finding->lifetimes;
    const size_t events = finding->view->history->count;
    uint32_t *dies = calloc(events + 1, sizeof *dies); // by event: 1 + row
    struct vr_map live = {0};
    enum vram_status status = dies == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    uint32_t event = 0;
    for (size_t row = 0; row < lifetimes->count && status == VRAM_OK; row++) {
        if (finding->roles.role[row] != VRAM_ROLE_GRADIENTS) continue;
        const uint64_t bytes = lifetimes->size_bytes[row];
        if (lifetimes->death[row] != VR_NEVER) dies[lifetimes->death[row]] = (uint32_t)row + 1;
        for (; row >= lifetimes->start_count && event < lifetimes->birth[row]; event++) {
            if (dies[event] == 0) continue;
            const uint64_t dead = lifetimes->size_bytes[dies[event] - 1], count = vr_map_get(&live, dead);
            if (count > 1)
                status = vr_map_set(&live, dead, count - 1);
            else
                (void)vr_map_take(&live, dead);
        }
        const uint64_t now = vr_map_get(&live, bytes) + 1;
        if (status == VRAM_OK) status = vr_map_set(&live, bytes, now);
        if (status == VRAM_OK && now > vr_map_get(&finding->expect, bytes)) status = vr_map_set(&finding->expect, bytes, now);
    }
    vr_map_release(&live);
    free(dies);
    return status;
}

// Counts parameters by size instead, if no backward pass was completed: a gradient has the size of its parameter.
static enum vram_status expect_by_parameters(struct role_finding *finding) {
    for (size_t row = 0; row < finding->lifetimes->count; row++) {
        const uint64_t bytes = finding->lifetimes->size_bytes[row];
        if (finding->roles.role[row] == VRAM_ROLE_PARAMETERS)
            VR_TRY(vr_map_set(&finding->expect, bytes, vr_map_get(&finding->expect, bytes) + 1));
    }
    return VRAM_OK;
}

// Returns the pass in progress at an event.
static enum vr_role_pass pass_at(const struct role_finding *finding, uint32_t event) {
    const struct vr_lifetimes *lifetimes = finding->lifetimes;
    size_t row;
    VR_LOWER_BOUND(row, i, lifetimes->start_count, lifetimes->count, lifetimes->birth[i] < event);
    while (row-- > lifetimes->start_count) {
        if (finding->roles.pass[row] != VR_PASS_IDLE) return (enum vr_role_pass)finding->roles.pass[row];
    }
    return VR_PASS_IDLE;
}

// Sets *role for a row from before the history. A parameter has a gradient of its size. Other permanent allocations of a training program
// are optimizer state, if the history does not show how that was made.
static enum vram_status role_of_old(struct role_finding *finding, size_t row, struct vr_map *taken, enum vram_role *role) {
    const struct vr_lifetimes *lifetimes = finding->lifetimes;
    const uint64_t bytes = lifetimes->size_bytes[row], expected = vr_map_get(&finding->expect, bytes);
    *role = VRAM_ROLE_UNKNOWN;
    if (lifetimes->death[row] != VR_NEVER) {
        const enum vr_role_pass pass = pass_at(finding, lifetimes->death[row]);
        if (pass == VR_PASS_BACKWARD) *role = VRAM_ROLE_ACTIVATIONS;
        if (pass != VR_PASS_BACKWARD && expected != 0) *role = VRAM_ROLE_GRADIENTS;
        return VRAM_OK;
    }
    const uint64_t count = vr_map_get(taken, bytes) + 1;
    VR_TRY(vr_map_set(taken, bytes, count));
    *role = VRAM_ROLE_PARAMETERS;
    if (bytes == 8519680) *role = VRAM_ROLE_WORKSPACES;
    if (expected != 0 && count > expected && !finding->has_state) *role = VRAM_ROLE_OPTIMIZER_STATE;
    return VRAM_OK;
}

static enum vram_status give_old_roles(struct role_finding *finding) {
    const struct vr_lifetimes *lifetimes = finding->lifetimes;
    struct vr_map taken = {0};
    enum vram_status status = VRAM_OK;
    const bool runs = finding->models && (finding->has_forward || finding->has_backward);
    for (size_t row = 0; row < lifetimes->start_count && runs && status == VRAM_OK; row++) {
        if (finding->roles.role[row] != VRAM_ROLE_UNKNOWN || (marks_of(finding, row) & VR_MARK_FRAMES) != 0) continue;
        enum vram_role role;
        status = role_of_old(finding, row, &taken, &role);
        if (status == VRAM_OK) finding->roles.role[row] = (uint8_t)role;
    }
    vr_map_release(&taken);
    return status;
}

// --- autocast's copies of weights -------------------------------------------------------------------------------------------------------

// Finds copies of weights. Autocast casts inputs by the same function, so only half a parameter's size counts.
static enum vram_status find_casts(struct role_finding *finding) {
    const struct vr_lifetimes *lifetimes = finding->lifetimes;
    struct vr_map halves = {0};
    enum vram_status status = VRAM_OK;
    for (size_t row = 0; row < lifetimes->count && status == VRAM_OK; row++) {
        const uint64_t half = lifetimes->size_bytes[row] / 2;
        if (finding->roles.role[row] == VRAM_ROLE_PARAMETERS && half != 0) status = vr_map_set(&halves, half, 1);
    }
    for (size_t row = 0; row < lifetimes->count && status == VRAM_OK; row++) {
        const uint8_t role = finding->roles.role[row];
        if (role != VRAM_ROLE_ACTIVATIONS && role != VRAM_ROLE_RECOMPUTED && role != VRAM_ROLE_TEMPORARIES) continue;
        const bool cast = (marks_of(finding, row) & VR_MARK_CAST) != 0;
        if (cast && vr_map_get(&halves, lifetimes->size_bytes[row]) != 0) finding->roles.role[row] = VRAM_ROLE_CASTS;
    }
    vr_map_release(&halves);
    return status;
}

static enum vram_status find_roles(struct role_finding *finding, struct vr_role_rules *rules) {
    VR_TRY(vr_role_notes_find(finding->view, finding->lifetimes, &finding->roles.notes));
    look_over(finding);
    find_passes(finding);
    VR_TRY(give_roles(finding, rules));
    VR_TRY(expect_gradients(finding));
    if (finding->ends_in_oom && finding->expect.count == 0) VR_TRY(expect_by_parameters(finding));
    if (finding->ends_in_oom) VR_TRY(give_roles(finding, rules)); // again, because sizes of gradients are known now
    VR_TRY(follow_replaced(finding));
    VR_TRY(give_old_roles(finding));
    return find_casts(finding);
}

enum vram_status vr_roles_find(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_role_rules *rules,
                               struct vr_roles *roles) {
    struct role_finding finding = {.view = view, .lifetimes = lifetimes};
    enum vram_status status = vr_role_marks_init(&finding.roles.marks, view->model);
    if (status != VRAM_OK) return status;
    finding.roles.role = calloc(lifetimes->count + 1, sizeof *finding.roles.role);
    finding.roles.pass = calloc(lifetimes->count + 1, sizeof *finding.roles.pass);
    if (finding.roles.role == NULL || finding.roles.pass == NULL) status = VRAM_NO_HOST_MEMORY;
    if (status == VRAM_OK) status = find_roles(&finding, rules);
    vr_map_release(&finding.expect);
    finding.roles.models = finding.models;
    if (status == VRAM_OK)
        *roles = finding.roles;
    else
        vr_roles_release(&finding.roles);
    return status;
}

void vr_roles_release(struct vr_roles *roles) {
    free(roles->role);
    free(roles->pass);
    vr_role_marks_release(&roles->marks);
    vr_role_notes_release(&roles->notes);
    *roles = (struct vr_roles){.role = NULL};
}

// --- modules -----------------------------------------------------------------------------------------------------------------------------

#define ANNOTATED_KEY ((uint64_t)1 << 32)

uint64_t vr_roles_module(struct vr_roles *roles, const struct vr_lifetimes *lifetimes, size_t row) {
    if (roles->notes.named[row] != 0) return ANNOTATED_KEY | (roles->notes.named[row] - 1);
    const uint32_t frame = vr_role_marks_module(&roles->marks, lifetimes->stack[row]);
    return frame == VR_NO_MODULE ? VR_NO_MODULE_KEY : frame;
}

void vr_roles_module_name(const struct vr_roles *roles, uint64_t key, struct vr_text *text) {
    if (key == VR_NO_MODULE_KEY) {
        vr_text_puts(text, "<no module>");
    } else if ((key & ANNOTATED_KEY) != 0) {
        const struct vr_module_name *name = &roles->notes.name[key & UINT32_MAX];
        vr_text_append(text, name->text, name->length);
    } else {
        const struct vr_model *model = roles->marks.model;
        vr_text_printf(text, "%.4096s:%llu:%.4096s", vr_model_string(model, model->frames.filename[key]),
                       (unsigned long long)model->frames.line[key], vr_model_string(model, model->frames.name[key]));
    }
}
