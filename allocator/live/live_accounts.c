// Finds the other holders of a device's memory (vram/accounts.h).
#include "live/live_accounts.h"

#include <stdio.h>

#include "base/json.h"
#include "live/nvml.h"
#include "os/os.h"
#include "vram/accounts.h"
#include "vram/log.h"

// --- the device -------------------------------------------------------------------------------------------------------------

static void write_uuid(const char *prefix, const unsigned char *uuid, char text[48]) {
    int length = snprintf(text, 48, "%s", prefix);
    for (int i = 0; i < 16; i++) {
        const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        length += snprintf(text + length, 48 - (size_t)length, "%s%02x", dash ? "-" : "", uuid[i]);
    }
}

static enum vram_status find_device(const struct vr_nvml *nvml, const unsigned char *uuid, const char *bus_id, void **device,
                                    struct vram_error *error) {
    static const char *const prefixes[] = {"GPU-", "MIG-"}; // the 16 bytes do not distinguish a whole device from a part of one
    char text[48];
    int result = VR_NVML_FUNCTION_NOT_FOUND;
    for (size_t i = 0; i < VR_COUNT_OF(prefixes) && uuid != NULL && nvml->by_uuid != NULL && result != VR_NVML_OK; i++) {
        write_uuid(prefixes[i], uuid, text);
        result = nvml->by_uuid(text, device);
    }
    if (result != VR_NVML_OK && bus_id != NULL && nvml->by_bus_id != NULL) result = nvml->by_bus_id(bus_id, device);
    if (result == VR_NVML_OK) return VRAM_OK;
    return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "NVML cannot find the device: %s", vr_nvml_text(nvml, result));
}

// --- the processes ------------------------------------------------------------------------------------------------------------

static void add_process(struct vram_processes *out, const struct vr_nvml_process *process) {
    if (process->id == vr_os_process_id()) {
        const bool better = !out->has_self || out->self_bytes == VRAM_NOT_KNOWN;
        if (better || (process->bytes != VRAM_NOT_KNOWN && process->bytes > out->self_bytes)) out->self_bytes = process->bytes;
        out->has_self = true;
        return;
    }
    // A process that both computes and draws is in both lists, with the same bytes.
    size_t at = 0;
    while (at < out->count && out->others[at].id != process->id) at++;
    if (at == VRAM_MOST_PROCESSES) {
        out->left_out++;
        return;
    }
    struct vram_process *other = &out->others[at];
    if (at == out->count) {
        *other = (struct vram_process){.id = process->id, .bytes = process->bytes};
        out->count++;
    } else if (process->bytes != VRAM_NOT_KNOWN && (other->bytes == VRAM_NOT_KNOWN || process->bytes > other->bytes)) {
        other->bytes = process->bytes;
    }
}

static int by_bytes(const void *a, const void *b) {
    const struct vram_process *x = a, *y = b;
    // Unknown, the largest number, sorts as the smallest.
    if (x->bytes + 1 != y->bytes + 1) return x->bytes + 1 < y->bytes + 1 ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

// If this process has a PID namespace of its own, the host's numbers mean other processes here, or none. Names are then read only if NVML
// knew this process by its number here.
static void name_all(struct vram_processes *out) {
    enum { OUTERMOST_NUMBERING = 0xEFFFFFFC }; // PROC_PID_INIT_INO of Linux
    struct vr_host_id host;
    const bool outermost = vr_os_host_id(&host) == VRAM_OK && host.processes == (uint64_t)OUTERMOST_NUMBERING;
    for (size_t i = 0; i < out->count && (outermost || out->has_self); i++) {
        char *name = out->others[i].name;
        if (vr_os_process_name(out->others[i].id, name, VRAM_PROCESS_NAME) != VRAM_OK) name[0] = '\0';
        for (; *name != '\0'; name++)
            if (*name < 0x20 || *name > 0x7e) *name = '?';
    }
}

static enum vram_status list_all(const struct vr_nvml *nvml, void *device, struct vram_processes *out, struct vram_error *error) {
    int first_result = VR_NVML_OK;
    for (unsigned list = 0; list < VR_NVML_LISTS; list++) {
        struct vr_nvml_process found[2 * VRAM_MOST_PROCESSES];
        size_t count = 0;
        int result;
        VR_TRY(vr_nvml_processes(nvml, list, device, found, VR_COUNT_OF(found), &count, &result));
        // Only the list of computing programs is always available; the others may be missing.
        if (list == 0) first_result = result;
        const size_t listed = result == VR_NVML_OK ? (count < VR_COUNT_OF(found) ? count : VR_COUNT_OF(found)) : 0;
        for (size_t i = 0; i < listed; i++) add_process(out, &found[i]);
        out->left_out += count - listed;
    }
    if (first_result != VR_NVML_OK && first_result != VR_NVML_INSUFFICIENT_SIZE)
        return vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "NVML cannot list processes: %s", vr_nvml_text(nvml, first_result));
    qsort(out->others, out->count, sizeof *out->others, by_bytes);
    name_all(out);
    return VRAM_OK;
}

enum vram_status vram_processes_find(const unsigned char *uuid, const char *bus_id, struct vram_processes *processes,
                                     struct vram_error *error) {
    if (processes == NULL || (uuid == NULL && bus_id == NULL))
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "processes must not be NULL, and uuid or bus_id must be given");
    struct vr_nvml nvml;
    void *device = NULL;
    VR_TRY(vr_nvml_open(&nvml, error));
    struct vram_processes *found = calloc(1, sizeof *found);
    enum vram_status status = found == NULL ? VRAM_NO_HOST_MEMORY : find_device(&nvml, uuid, bus_id, &device, error);
    if (status == VRAM_OK) {
        found->self_bytes = VRAM_NOT_KNOWN;
        status = list_all(&nvml, device, found, error);
    }
    if (status == VRAM_OK) *processes = *found;
    free(found);
    vr_nvml_close(&nvml);
    return status == VRAM_NO_HOST_MEMORY ? vr_fail(error, status, VRAM_NO_OFFSET, "not enough host memory for the list of processes")
                                         : status;
}

enum vram_status vram_processes_available(struct vram_error *error) {
    struct vr_nvml nvml;
    VR_TRY(vr_nvml_open(&nvml, error));
    vr_nvml_close(&nvml);
    return VRAM_OK;
}

bool vram_main_memory(uint64_t *available_bytes, uint64_t *total_bytes) {
    return available_bytes != NULL && total_bytes != NULL && vr_os_main_memory(available_bytes, total_bytes);
}

// --- in a recording -------------------------------------------------------------------------------------------------------------

static void put_bytes(struct vr_json *json, const char *key, uint64_t bytes) {
    if (bytes == VRAM_NOT_KNOWN) {
        vr_json_null(json, key);
    } else {
        vr_json_u64(json, key, bytes);
    }
}

static void put_processes(struct vr_json *json, const struct vram_processes *processes) {
    vr_json_bool(json, "has_self", processes->has_self);
    put_bytes(json, "self_bytes", processes->self_bytes);
    vr_json_u64(json, "left_out", processes->left_out);
    vr_json_array(json, "processes");
    for (size_t i = 0; i < processes->count; i++) {
        vr_json_object(json, NULL);
        vr_json_u64(json, "pid", processes->others[i].id);
        vr_json_string(json, "name", processes->others[i].name);
        put_bytes(json, "bytes", processes->others[i].bytes);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

void vr_accounts_text(const struct vram_accounts *accounts, struct vr_text *text) {
    struct vr_json json;
    vr_json_init(&json, text, false);
    vr_json_object(&json, NULL);
    vr_json_u64(&json, "device", accounts->device);
    if (accounts->time_us != INT64_MIN) vr_json_i64(&json, "time_us", accounts->time_us);
    put_bytes(&json, "context_bytes", accounts->context_bytes);
    put_bytes(&json, "module_bytes", accounts->module_bytes);
    put_bytes(&json, "at_start_bytes", accounts->at_start_bytes);
    if (accounts->processes != NULL) {
        put_processes(&json, accounts->processes);
    } else {
        vr_json_string(&json, "why", accounts->why == NULL ? "" : accounts->why);
    }
    vr_json_object_end(&json);
}

enum vram_status vram_accounts_log(struct vram_log *log, const struct vram_accounts *accounts, unsigned slot) {
    VR_REQUIRE(log && accounts);
    char key[32];
    if (slot >= VRAM_ACCOUNTS_SLOTS) return VRAM_INVALID_ARGUMENT;
    struct vr_text text = {0};
    vr_accounts_text(accounts, &text);
    (void)snprintf(key, sizeof key, "vram_accounts_%u", slot);
    enum vram_status status = vr_text_status(&text);
    if (status == VRAM_OK) status = vram_log_setting(log, key, vr_text_string(&text));
    vr_text_release(&text);
    return status;
}
