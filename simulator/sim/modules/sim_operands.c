#include "sim/modules/sim_operands.h"

#include "sim/modules/sim_arguments.h"
#include "sim/modules/sim_concatenation.h"
#include "sim/modules/sim_outputs.h"
#include "sim/streams/sim_checking.h"
#include "sim/streams/sim_guards.h"

static struct vr_sim_kernel *kernel_of(const struct vr_sim *sim, const struct vr_sim_launch *launch) {
    struct vr_sim_function *function = vr_sim_function_find(sim, launch->function);
    return function == NULL ? NULL : &function->image->kernels[function->kernel];
}

// Returns the bytes that a kernel uses of an operand at least. 0: unknown.
static uint64_t bytes_of(const struct vr_sim_arguments *arguments, const struct vr_sim_kernel *kernel,
                         const struct vr_sim_operand *operand) {
    uint64_t elements = 0;
    if (operand->elements == 0 || !vr_sim_argument_number(arguments, kernel, operand->elements - 1, &elements)) return 0;
    return elements > VR_SIM_LIMIT ? 0 : elements * operand->element_bytes;
}

// Adds the addresses that an operand's words hold. The elements may be larger than the smallest ones that the kernel may have.
static void add_operand(const struct vr_sim *sim, const struct vr_sim_arguments *arguments, const struct vr_sim_kernel *kernel,
                        const struct vr_sim_operand *operand, struct vr_sim_accesses *list) {
    const unsigned char *bytes = vr_sim_argument_at(arguments, kernel, operand->parameter);
    for (uint32_t i = 0; bytes != NULL && i < operand->words; i++) {
        uint64_t word;
        memcpy(&word, bytes + (operand->from + i) * sizeof word, sizeof word);
        const bool near = vr_sim_is_near(&sim->allocated, word) || vr_sim_is_near(&sim->reserved, word);
        if (!near && vr_sim_ranges_holding(&sim->hosts, word) == NULL) continue;
        vr_sim_accesses_add(list, (struct vr_check_access){.address = word,
                                                           .size_bytes = bytes_of(arguments, kernel, operand),
                                                           .effect = (enum vr_check_effect)operand->effect,
                                                           .open = true,
                                                           .anywhere = operand->anywhere});
    }
}

// Adds the memory of a kernel that only fills memory (sim_launch.c). Its arguments are the number of elements, the value and the address.
static void add_fill(const struct vr_sim_launch *launch, const struct vr_sim_kernel *kernel, struct vr_sim_accesses *list) {
    int32_t count;
    uint64_t to;
    memcpy(&count, launch->parameters[0], sizeof count);
    memcpy(&to, launch->parameters[2], sizeof to);
    if (count <= 0) return;
    vr_sim_accesses_add(
        list, (struct vr_check_access){.address = to, .size_bytes = (uint64_t)count * kernel->fill_value_bytes, .effect = VR_CHECK_WRITE});
}

// ---- Calls of libraries.

// Gets the call that the launch stands for. Returns false for other kernels, and for a kernel of the program with the same name.
static bool get_library_call(const struct vr_sim_launch *launch, const struct vr_sim_kernel *kernel, struct vr_sim_library_call *call) {
    if (kernel == NULL || launch->parameters == NULL || strcmp(kernel->name, VR_SIM_LIBRARY_KERNEL) != 0) return false;
    if (kernel->parameter_count != 1 || kernel->parameters[0].size_bytes != sizeof *call) return false;
    memcpy(call, launch->parameters[0], sizeof *call);
    return call->count <= VR_SIM_LIBRARY_OPERANDS && memchr(call->name, '\0', sizeof call->name) != NULL;
}

static void add_library_call(const struct vr_sim_library_call *call, struct vr_sim_accesses *list) {
    for (uint64_t i = 0; i < call->count; i++) {
        const uint64_t effect = call->operands[i].effect & ~(uint64_t)VR_SIM_LIBRARY_OPEN;
        if (effect <= VR_CHECK_WRITE && call->operands[i].size_bytes > 0)
            vr_sim_accesses_add(list, (struct vr_check_access){.address = call->operands[i].address,
                                                               .size_bytes = call->operands[i].size_bytes,
                                                               .effect = (enum vr_check_effect)effect,
                                                               .open = call->operands[i].effect != effect});
    }
}

// ---- Launches.

static void add_launch(struct vr_sim *sim, const struct vr_sim_launch *launch, struct vr_sim_accesses *list) {
    struct vr_sim_kernel *kernel = kernel_of(sim, launch);
    const struct vr_sim_arguments arguments = vr_sim_arguments_of(launch);
    struct vr_sim_library_call call;
    if (kernel == NULL || !kernel->has_parameters || (launch->parameters == NULL && launch->extra == NULL)) return;
    if (get_library_call(launch, kernel, &call)) {
        add_library_call(&call, list);
        return;
    }
    if (kernel->fill_value_bytes != 0 && launch->parameters != NULL) {
        add_fill(launch, kernel, list);
        return;
    }
    const unsigned char *first = kernel->parameter_count == 0 ? NULL : vr_sim_argument_at(&arguments, kernel, 0);
    if (first != NULL && vr_sim_tensor_lists(kernel->name, first, kernel->parameters[0].size_bytes, launch->grid[0],
                                             vr_sim_least_element_bytes(kernel->name), list))
        return;
    if (vr_sim_concatenation(kernel, &arguments, launch->grid[1], list)) return;
    if (!kernel->has_operands && !vr_sim_kernel_find_operands(kernel)) return;
    for (size_t i = 0; i < kernel->operand_count; i++) add_operand(sim, &arguments, kernel, &kernel->operands[i], list);
}

const struct vr_sim_accesses *vr_sim_launch_accesses(struct vr_sim *sim, const struct vr_sim_launch *launch) {
    sim->accesses.count = 0;
    add_launch(sim, launch, &sim->accesses);
    return &sim->accesses;
}

// ---- What else a launch may write. It counts as written where reads of uninitialized memory are looked for.

static bool is_known(uint64_t address, const struct vr_check_access *accesses, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (accesses[i].address == address && accesses[i].effect != VR_CHECK_USE) return true;
    return false;
}

// Without the code's parameters or a library's operands the launch may write anything.
static bool may_write_anything(const struct vr_sim_launch *launch, const struct vr_sim_kernel *kernel) {
    struct vr_sim_library_call call;
    if (kernel == NULL || !kernel->has_parameters) return true;
    return get_library_call(launch, kernel, &call) && call.count == 0;
}

// Returns whether an argument of the launch, or a part of it, is an address of device memory.
static bool has_address(const struct vr_sim *sim, const struct vr_sim_launch *launch, const struct vr_sim_kernel *kernel) {
    const struct vr_sim_arguments arguments = vr_sim_arguments_of(launch);
    const bool passed = arguments.list != NULL || arguments.buffer != NULL;
    for (size_t i = 0; passed && i < kernel->parameter_count; i++) {
        const unsigned char *bytes = vr_sim_argument_at(&arguments, kernel, (uint32_t)i);
        uint64_t word;
        for (uint32_t at = 0; bytes != NULL && at + sizeof word <= kernel->parameters[i].size_bytes; at += sizeof word) {
            memcpy(&word, bytes + at, sizeof word);
            if (vr_sim_is_near(&sim->allocated, word) || vr_sim_is_near(&sim->reserved, word)) return true;
        }
    }
    return false;
}

// Passes on the name of a launch of whose memory nothing is known, so that the answer can say so.
static void note_unseen(const struct vr_sim *sim, const struct vr_sim_launch *launch, size_t access_count) {
    struct vr_sim_kernel *kernel = kernel_of(sim, launch);
    struct vr_sim_library_call call;
    if (access_count > 0 || sim->checking->unseen == NULL || kernel == NULL) return;
    if (get_library_call(launch, kernel, &call)) {
        if (call.count == 0) sim->checking->unseen(call.name);
    } else if (!kernel->unseen && kernel->fill_value_bytes == 0 && (!kernel->has_parameters || has_address(sim, launch, kernel))) {
        kernel->unseen = true;
        sim->checking->unseen(kernel->name);
    }
}

static void note_unknown_writes(const struct vr_sim *sim, const struct vr_sim_launch *launch, const struct vr_check_access *accesses,
                                size_t count) {
    const struct vr_sim_kernel *kernel = kernel_of(sim, launch);
    struct vr_check *check = sim->checking->check;
    const struct vr_sim_arguments arguments = vr_sim_arguments_of(launch);
    if (may_write_anything(launch, kernel)) vr_check_written(check, 0);
    for (size_t i = 0; kernel != NULL && kernel->has_parameters && i < kernel->parameter_count; i++) {
        const bool passed = arguments.list != NULL || arguments.buffer != NULL;
        const unsigned char *bytes = passed ? vr_sim_argument_at(&arguments, kernel, (uint32_t)i) : NULL;
        uint64_t word;
        for (uint32_t at = 0; bytes != NULL && at + sizeof word <= kernel->parameters[i].size_bytes; at += sizeof word) {
            memcpy(&word, bytes + at, sizeof word);
            const bool near = vr_sim_is_near(&sim->allocated, word) || vr_sim_is_near(&sim->reserved, word);
            if (near && !is_known(word, accesses, count)) vr_check_written(check, word);
        }
    }
}

// ---- Other processes. Kernels and collectives can wait for those of other processes, which no stream shows.

static bool is_shared(const struct vr_check *check, const struct vr_check_access *accesses, size_t count) {
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) found = vr_check_shares(check, accesses[i].address);
    return found;
}

// Returns whether the launch may wait for another process. Not the kernels of PyTorch's operations, nor code without such instructions.
static bool may_meet(const struct vr_sim *sim, const struct vr_sim_launch *launch, const struct vr_check_access *accesses, size_t count) {
    const struct vr_sim_kernel *kernel = kernel_of(sim, launch);
    struct vr_sim_library_call call;
    if (get_library_call(launch, kernel, &call)) return strncmp(call.name, "nccl", 4) == 0 || call.name[0] == '\0';
    if (!vr_check_shares(sim->checking->check, 0)) return false;
    if (kernel == NULL) return true;
    if (kernel->fill_value_bytes != 0 || strstr(kernel->name, "2at6native") != NULL) return false;
    if (kernel->effects != NULL) return kernel->meets;
    return count == 0 ? !kernel->has_parameters || has_address(sim, launch, kernel) : is_shared(sim->checking->check, accesses, count);
}

// ---- Reports.

// Returns what the launch is called in findings. A library's name is copied to *call.
static const char *name_of(const struct vr_sim *sim, const struct vr_sim_launch *launch, struct vr_sim_library_call *call) {
    const struct vr_sim_kernel *kernel = kernel_of(sim, launch);
    if (get_library_call(launch, kernel, call)) return call->name[0] == '\0' ? "a library's kernel" : call->name;
    return kernel == NULL ? "a kernel" : kernel->name;
}

void vr_sim_operands_check(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_sim_launch *launch) {
    struct vr_sim_library_call call;
    const struct vr_sim_accesses *accesses = vr_sim_launch_accesses(sim, launch);
    if (may_meet(sim, launch, accesses->items, accesses->count)) vr_check_alone(sim->checking->check);
    vr_check_work(sim->checking->check, stream->serial, vr_sim_checking_place(sim, name_of(sim, launch, &call)), accesses->items,
                  accesses->count);
    if (sim->hosts.count > 0) vr_sim_guards_add_accesses(sim, stream, accesses->items, accesses->count);
    note_unseen(sim, launch, accesses->count);
    if (sim->checking->unwritten) note_unknown_writes(sim, launch, accesses->items, accesses->count);
}

void vr_sim_operands_check_step(struct vr_sim *sim, const struct vr_sim_work *work, const size_t *after, size_t after_count) {
    struct vr_check_access of_copy[VR_SIM_WORK_ACCESSES] = {{0}};
    const struct vr_check_access *accesses = of_copy;
    struct vr_check_place place = {.stack = work == NULL ? 0 : work->stack};
    const struct vr_sim_launch *launch = NULL;
    struct vr_sim_library_call call;
    size_t count = 0;
    if (work != NULL && work->type == VR_CU_GRAPH_NODE_TYPE_KERNEL && work->payload != NULL) {
        launch = &((const struct vr_sim_kernel_payload *)(const void *)work->payload)->launch;
        place.work = name_of(sim, launch, &call);
        accesses = vr_sim_launch_accesses(sim, launch)->items;
        count = sim->accesses.count;
        if (may_meet(sim, launch, accesses, count)) vr_check_alone(sim->checking->check);
    } else if (work != NULL) {
        place.work = vr_sim_work_name(sim, work);
        count = vr_sim_work_accesses(work, of_copy);
    }
    vr_check_launch_step(sim->checking->check, after, after_count, place, work == NULL ? 0 : work->lives, accesses, count);
    if (launch != NULL) note_unseen(sim, launch, count);
    if (sim->checking->unwritten && launch != NULL) note_unknown_writes(sim, launch, accesses, count);
}
