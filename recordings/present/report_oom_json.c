// Prints out-of-memory events as JSON: the request, the cause, the memory at that moment, and the holders of the rest of the device.
#include "base/json_rows.h"
#include "present/report_members.h"
#include "present/shared_texts.h"
#include "vram/report.h"

#define OOM_REQUEST_FACTS(X)                                                                                                               \
    X(U64, "index", it->event, ALWAYS, "the event")                                                                                        \
    X(U64, "size", it->size_bytes, ALWAYS, "bytes of the rounded request")                                                                 \
    X(U64, "device_free", it->device_free_bytes, NULL_UNLESS(it->has_device_free), "the driver's free bytes")

static void put_oom(struct vr_json *json, const struct vram_report_oom *it) {
    vr_json_object(json, NULL);
    OOM_REQUEST_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

#define PROCESS_FACTS(X)                                                                                                                   \
    X(U64, "pid", it->id, ALWAYS, "process number")                                                                                        \
    X(TEXT, "name", it->name, ALWAYS, "name of the process; \"\": not known")                                                              \
    X(U64, "bytes", it->bytes, NULL_UNLESS(it->bytes != UINT64_MAX), "bytes that the process held; null: not known")

static void put_processes(struct vr_json *json, const char *name, const struct vram_report_accounts *accounts) {
    vr_json_array(json, name);
    for (size_t i = 0; i < accounts->process_count; i++) {
        const struct vram_report_process *it = &accounts->processes[i];
        vr_json_object(json, NULL);
        PROCESS_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define ACCOUNT_FACTS(X)                                                                                                                   \
    X(U64, "context_bytes", it->context_bytes, NULL_UNLESS(it->has_context), "measured bytes of this process's contexts")                  \
    X(U64, "module_bytes", it->module_bytes, NULL_UNLESS(it->has_modules),                                                                 \
      "measured bytes of this process's modules (code and variables)")                                                                     \
    X(U64, "driver_bytes", it->driver_bytes, NULL_UNLESS(it->has_self), "other bytes that the driver used for this process")               \
    X(U64, "other_bytes", it->other_bytes, NULL_UNLESS(it->has_processes), "other processes")                                              \
    X(U64, "unknown_bytes", it->unknown_bytes, ALWAYS, "the rest of `outside_bytes`")                                                      \
    X(U64, "at_start_bytes", it->at_start_bytes, NULL_UNLESS(it->at_start_bytes != UINT64_MAX),                                            \
      "in use on the device just after the process created its first context")                                                             \
    X(BOOL, "apart", it->apart, ALWAYS, "this process was distinguished from the others; else it may be one of them")                      \
    X(TEXT, "why", it->why, ALWAYS, "why the processes are not known; \"\": they are known, or the reason is not known")                   \
    X(U64, "left_out", it->left_out, ALWAYS, "number of processes that are not listed")                                                    \
    X(ARRAY, "processes", put_processes(json, key, it), ALWAYS, "other processes, by descending bytes (see below)")

static void put_accounts(struct vr_json *json, const char *name, const struct vram_report_accounts *it) {
    vr_json_object(json, name);
    ACCOUNT_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

static const char *cause_name(enum vram_report_oom_cause cause) {
    static const char *const names[] = {
#define CAUSE_NAME(constant, name) #name,
        VRAM_REPORT_OOM_CAUSES(CAUSE_NAME)
#undef CAUSE_NAME
    };
    return names[cause];
}

#define OOM_CAUSE_FACTS(X)                                                                                                                 \
    X(U64, "index", it->event, ALWAYS, "the event")                                                                                        \
    X(TEXT, "cause", cause_name(it->cause), ALWAYS, "why the request failed; see the table of causes below")                               \
    X(BOOL, "host", it->is_host, OMIT_UNLESS(it->is_host), "true: pinned host memory ran out")                                             \
    X(TEXT, "text", it->text, ALWAYS, "the cause as a sentence")                                                                           \
    X(TEXT, "advice", it->advice, ALWAYS, "possible remedy; may be empty")                                                                 \
    X(TEXT, "site", it->site, ALWAYS, "the call site of the request")                                                                      \
    X(I64, "stream", it->stream, ALWAYS, "the stream of the request")

#define OOM_HOLDER_FACTS(X)                                                                                                                \
    X(OBJECT, "accounts", put_accounts(json, key, it->accounts), NULL_UNLESS(it->accounts != NULL),                                        \
      "owners of `outside_bytes`, if the recording names them (see below)")                                                                \
    X(ARRAY, "libraries", vr_report_json_groups(json, key, it->libraries, it->library_count), OMIT_UNLESS(it->library_count != 0),         \
      "in recordings of `vram run`: allocated memory by requesting library (`site`, `bytes`, `count`)")                                    \
    X(ARRAY, "holders", vr_report_json_groups(json, key, it->holders, it->holder_count), ALWAYS,                                           \
      "largest call sites of the allocated memory (`site`, `bytes`, `count`)")                                                             \
    X(OBJECT, "demand", vr_demand_json(json, it->demand), OMIT_UNLESS(it->demand != NULL),                                                 \
      "for the last event of a device: the composition of the memory in use, and remedies that lower it (see below)")

static void put_oom_cause(struct vr_json *json, const struct vram_report_oom *it) {
    vr_json_object(json, NULL);
    OOM_CAUSE_FACTS(VR_FACT_JSON)
    if (it->has_picture) {
        VRAM_REPORT_OOM_FACTS(VR_MEMBER_JSON)
        OOM_HOLDER_FACTS(VR_FACT_JSON)
    }
    vr_json_object_end(json);
}

void vr_report_json_oom_events(struct vr_json *json, const char *key, const struct vram_report_device *device) {
    vr_json_array(json, key);
    for (size_t i = 0; i < device->oom_count; i++) put_oom(json, &device->ooms[i]);
    vr_json_array_end(json);
}

void vr_report_json_oom_causes(struct vr_json *json, const char *key, const struct vram_report_device *device) {
    vr_json_array(json, key);
    for (size_t i = 0; i < device->oom_count; i++) put_oom_cause(json, &device->ooms[i]);
    vr_json_array_end(json);
}

void vr_report_json_ooms(struct vr_json *json, const struct vram_report_device *device) {
    vr_report_json_oom_events(json, "oom", device);
    vr_report_json_oom_causes(json, "oom_causes", device);
}
