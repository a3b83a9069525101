#include "analyze/role_marks.h"

static_assert(VR_MARK_NUMBER_COUNT <= 24, "the upper bits of a frame are its own");

// What a frame is, besides its marks.
#define FRAME_KNOWN    ((uint32_t)1 << 24)
#define FRAME_PYTHON   ((uint32_t)1 << 25)
#define FRAME_TORCH    ((uint32_t)1 << 26) // a file of PyTorch's
#define FRAME_CALLED   ((uint32_t)1 << 27) // its function is forward()
#define STACK_KNOWN    ((uint32_t)1 << 24)
#define MARKS_OF(bits) ((bits) & (STACK_KNOWN - 1))

// Names are looked at up to here: a stranger's file may hold names of megabytes in a million frames.
enum { LOOKED_BYTES = 600 };

struct frame_rule {
    bool python;
    uint32_t mark;
    const char *file;
    const char *function;
};

static const struct frame_rule rules[] = {
#define VR_PYTHON_FRAME(mark, file, function) {true, VR_MARK_##mark, file, function},
#define VR_NATIVE_FRAME(mark, part)           {false, VR_MARK_##mark, "", part},
#include "analyze/roles.def"
};

enum vram_status vr_role_marks_init(struct vr_role_marks *marks, const struct vr_model *model) {
    uint32_t *of_frame = calloc((size_t)model->frames.count + 1, sizeof *of_frame);
    uint32_t *of_stack = calloc((size_t)model->stacks.count + 1, sizeof *of_stack);
    if (of_frame == NULL || of_stack == NULL) {
        free(of_frame);
        free(of_stack);
        return VRAM_NO_HOST_MEMORY;
    }
    *marks = (struct vr_role_marks){.model = model, .of_frame = of_frame, .of_stack = of_stack};
    return VRAM_OK;
}

void vr_role_marks_release(struct vr_role_marks *marks) {
    free(marks->of_frame);
    free(marks->of_stack);
    *marks = (struct vr_role_marks){.model = NULL};
}

// The last bytes of a file's path, the first of a function's name.
struct looked_at {
    char file[LOOKED_BYTES + 1];
    char function[LOOKED_BYTES + 1];
    const char *last; // of a Python function's name: what stands after its last dot
};

static void classify_frame(const struct vr_model *model, uint32_t frame, struct looked_at *looked) {
    const uint32_t file = model->frames.filename[frame], name = model->frames.name[frame];
    const size_t file_length = vr_model_string_length(model, file), name_length = vr_model_string_length(model, name);
    const size_t file_bytes = file_length < LOOKED_BYTES ? file_length : LOOKED_BYTES;
    const size_t name_bytes = name_length < LOOKED_BYTES ? name_length : LOOKED_BYTES;
    memcpy(looked->file, vr_model_string(model, file) + (file_length - file_bytes), file_bytes);
    looked->file[file_bytes] = '\0';
    memcpy(looked->function, vr_model_string(model, name), name_bytes);
    looked->function[name_bytes] = '\0';
    for (char *c = looked->file; *c != '\0'; c++) {
        if (*c == '\\') *c = '/';
    }
    const char *dot = strrchr(looked->function, '.');
    looked->last = dot == NULL ? looked->function : dot + 1;
}

static bool is_named(const char *name, const char *wanted) {
    const size_t length = strlen(wanted);
    if (length != 0 && wanted[length - 1] == '*') return strncmp(name, wanted, length - 1) == 0;
    return length == 0 || strcmp(name, wanted) == 0;
}

static bool ends_in(const char *text, const char *end) {
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static uint32_t look_up_marks(const struct vr_model *model, uint32_t frame) {
    struct looked_at looked;
    classify_frame(model, frame, &looked);
    const bool python = ends_in(looked.file, ".py") || (looked.file[0] == '<' && looked.function[0] != '\0');
    uint32_t bits = FRAME_KNOWN | (python ? FRAME_PYTHON : 0);
    if (python && strstr(looked.file, "/torch/") != NULL) bits |= FRAME_TORCH;
    if (python && strcmp(looked.last, "forward") == 0) bits |= FRAME_CALLED;
    for (size_t i = 0; i < VR_COUNT_OF(rules); i++) {
        const struct frame_rule *rule = &rules[i];
        if (rule->python != python) continue;
        if (python ? is_named(looked.last, rule->function) && strstr(looked.file, rule->file) != NULL
                   : strstr(looked.function, rule->function) != NULL)
            bits |= rule->mark;
    }
    return bits;
}

static uint32_t frame_bits(struct vr_role_marks *marks, uint32_t frame) {
    if (marks->of_frame[frame] == 0) marks->of_frame[frame] = look_up_marks(marks->model, frame);
    return marks->of_frame[frame];
}

// Frames go from the innermost outwards. What a pass runs once more is that only where no other backward pass began further inside; a
// Python frame of PyTorch's that nobody called is the bottom of the backward pass's own thread.
static uint32_t stack_marks(struct vr_role_marks *marks, uint64_t first, uint64_t end) {
    uint32_t bits = STACK_KNOWN, outermost = 0;
    for (uint64_t i = first; i < end; i++) {
        const uint32_t frame = frame_bits(marks, marks->model->stacks.frame[i]);
        uint32_t found = MARKS_OF(frame);
        if ((found & VR_MARK_RECOMPUTE) != 0) {
            found |= VR_MARK_BACKWARD;
            if ((bits & VR_MARK_ENGINE) != 0 || (bits & VR_MARK_FORWARD) == 0) found &= ~(uint32_t)VR_MARK_RECOMPUTE;
        }
        bits |= found | VR_MARK_FRAMES;
        if ((frame & FRAME_PYTHON) == 0) {
            bits |= VR_MARK_NATIVE;
        } else {
            bits |= VR_MARK_PYTHON;
            outermost = marks->model->stacks.frame[i];
        }
    }
    if ((bits & VR_MARK_PYTHON) != 0 && (frame_bits(marks, outermost) & FRAME_TORCH) != 0) {
        const char *name = vr_model_string(marks->model, marks->model->frames.name[outermost]);
        if (name[0] != '<') bits |= VR_MARK_BACKWARD;
    }
    return bits;
}

uint32_t vr_role_marks_of(struct vr_role_marks *marks, uint32_t stack) {
    const struct vr_stacks *stacks = &marks->model->stacks;
    if (marks->of_stack[stack] == 0) marks->of_stack[stack] = stack_marks(marks, stacks->offset[stack], stacks->offset[stack + 1]);
    return MARKS_OF(marks->of_stack[stack]);
}

uint32_t vr_role_marks_of_frame(struct vr_role_marks *marks, uint32_t frame) { return MARKS_OF(frame_bits(marks, frame)); }

bool vr_role_marks_is_own(struct vr_role_marks *marks, uint32_t frame) {
    const uint32_t bits = frame_bits(marks, frame);
    return (bits & FRAME_PYTHON) != 0 && (bits & FRAME_TORCH) == 0;
}

uint32_t vr_role_marks_module(struct vr_role_marks *marks, uint32_t stack) {
    const struct vr_stacks *stacks = &marks->model->stacks;
    uint32_t of_torch = VR_NO_MODULE;
    for (uint64_t i = stacks->offset[stack]; i < stacks->offset[stack + 1]; i++) {
        const uint32_t bits = frame_bits(marks, stacks->frame[i]);
        if ((bits & FRAME_CALLED) == 0) continue;
        if ((bits & FRAME_TORCH) == 0) return stacks->frame[i];
        if (of_torch == VR_NO_MODULE) of_torch = stacks->frame[i];
    }
    return of_torch;
}
