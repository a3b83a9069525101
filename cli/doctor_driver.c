// The driver and its devices.
#include "doctor.h"
#include "ui.h"

enum { FIRST_HIP_VERSION = 10000000 }; // HIP counts its versions otherwise than CUDA

static void add_ability(struct doctor *doctor, const char *area, const char *name, bool can, const char *with, const char *without) {
    struct doctor_row *row = doctor_add(doctor, area, name, can ? DOCTOR_OK : DOCTOR_OFF, "%s", can ? "yes" : "no");
    doctor_explain(row, "%s", can ? with : without);
}

static void look_at_device(struct doctor *doctor, struct vram_driver *driver, uint32_t device) {
    static const char *const areas[] = {"device 0", "device 1", "device 2", "device 3", "device 4", "device 5", "device 6", "device 7"};
    const char *area = device < sizeof areas / sizeof areas[0] ? areas[device] : "further devices";
    struct vram_device_facts facts;
    struct vram_error error = {.status = VRAM_OK};
    char total[UI_SIZE_CAPACITY], available[UI_SIZE_CAPACITY];
    if (vram_driver_device_facts(driver, device, &facts, &error) != VRAM_OK) {
        doctor_explain(doctor_add(doctor, area, "name", DOCTOR_WRONG, "unknown"), "%s", error.message);
        return;
    }
    doctor_add(doctor, area, "name", DOCTOR_OK, "%s, compute capability %d.%d, %d multiprocessors", facts.name, facts.compute_major,
               facts.compute_minor, facts.multiprocessors);
    doctor_add(doctor, area, "memory", DOCTOR_OK, "%s, %s free%s", ui_size(facts.total_bytes, total), ui_size(facts.free_bytes, available),
               facts.integrated ? "; it is the host's" : "");
    add_ability(doctor, area, "virtual memory", facts.virtual_memory, "expandable_segments:True can be used",
                "expandable_segments is ignored: segments stay whole");
    if (facts.virtual_memory) doctor_add(doctor, area, "page size", DOCTOR_OK, "%s", ui_size(facts.granularity_bytes, total));
    add_ability(doctor, area, "memory pools", facts.memory_pools, "backend:cudaMallocAsync can be used",
                "backend:cudaMallocAsync is refused");
    add_ability(doctor, area, "file handles", facts.file_handles, "pages can be shared with processes of this machine",
                "only plain segments can be shared with other processes");
    add_ability(doctor, area, "fabric handles", facts.fabric_handles, "the driver can share pages across machines; vram does not yet",
                "pages cannot be shared across machines");
    add_ability(doctor, area, "host register", facts.host_register, "pinned_use_cuda_host_register can be used",
                "pinned_use_cuda_host_register is not possible");
    add_ability(doctor, area, "managed memory", facts.managed, "", "");
    doctor->virtual_memory = doctor->virtual_memory && facts.virtual_memory;
    doctor->memory_pools = doctor->memory_pools && facts.memory_pools;
    doctor->host_register = doctor->host_register && facts.host_register;
    doctor->file_handles = doctor->file_handles && facts.file_handles;
}

static void look_at_peers(struct doctor *doctor, struct vram_driver *driver, uint32_t count) {
    unsigned pairs = 0, reachable = 0;
    for (uint32_t a = 0; a < count; a++) {
        for (uint32_t b = 0; b < count; b++) {
            bool can = false;
            if (a == b || vram_driver_can_access_peer(driver, a, b, &can) != VRAM_OK) continue;
            pairs++;
            reachable += can;
        }
    }
    if (pairs == 0) return;
    struct doctor_row *row =
        doctor_add(doctor, "driver", "peer access", reachable == pairs ? DOCTOR_OK : DOCTOR_NOTE, "%u of %u pairs", reachable, pairs);
    if (reachable != pairs) doctor_explain(row, "blocks cannot be used directly by devices that do not reach each other");
}

void doctor_look_at_driver(struct doctor *doctor, struct vram_driver *driver, const struct vram_error *error) {
    uint32_t count = 0;
    int32_t version = 0;
    if (driver == NULL) {
        doctor->no_driver = true;
        struct doctor_row *row = doctor_add(doctor, "driver", "CUDA driver", DOCTOR_OFF, "none");
        doctor_explain(row,
                       "%s. Recordings can be read, replayed and viewed all the same, and programs run on the simulated driver "
                       "(vram doctor --sim shows it)",
                       error->message);
        return;
    }
    if (vram_driver_version(driver, &version) != VRAM_OK || vram_driver_devices(driver, &count) != VRAM_OK) {
        doctor_explain(doctor_add(doctor, "driver", "CUDA driver", DOCTOR_WRONG, "it does not answer"), "its calls fail");
        return;
    }
    if (version >= FIRST_HIP_VERSION)
        doctor_add(doctor, "driver", "HIP runtime", DOCTOR_OK, "HIP %d.%d", version / 10000000, version % 10000000 / 100000);
    else
        doctor_add(doctor, "driver", "CUDA driver", DOCTOR_OK, "for CUDA %d.%d", version / 1000, version % 1000 / 10);
    doctor_add(doctor, "driver", "devices", count == 0 ? DOCTOR_WRONG : DOCTOR_OK, "%u", count);
    doctor->device_count = count;
    doctor->virtual_memory = doctor->memory_pools = doctor->host_register = doctor->file_handles = count != 0;
    look_at_peers(doctor, driver, count);
    for (uint32_t device = 0; device < count; device++) look_at_device(doctor, driver, device);
}
