#include "explore/query/selection.h"

#include "analyze/text_search.h"
#include "explore/query/drawn_shapes.h"
#include "model/recording.h"

enum { KEPT = 2 };

static const char *const filter_keys[] = {"action", "address", "least", "most", "stream", "text", "regex"};

struct kept {
    char *key; // the filter's parameters; NULL: an unused entry
    uint32_t *event;
    size_t count, event_capacity;
};

struct vr_event_selections {
    struct kept kept[KEPT]; // most recently used first
};

struct filter {
    uint32_t actions; // bits of the selected actions
    bool by_address, by_stream;
    uint64_t address, least, most;
    int64_t stream;
    struct vr_search search;
    bool by_text;
    uint8_t *found; // with by_text: bits by row
};

static void release_kept(struct kept *kept) {
    free(kept->key);
    free(kept->event);
    *kept = (struct kept){.key = NULL};
}

void vr_event_selections_destroy(struct vr_event_selections *event_selections) {
    if (event_selections == NULL) return;
    for (size_t i = 0; i < KEPT; i++) release_kept(&event_selections->kept[i]);
    free(event_selections);
}

size_t vr_event_selection_index(const struct vr_event_selection *list, int64_t event) {
    if (event <= 0) return 0; // -1: before the first event
    if (list->event == NULL) return (uint64_t)event < list->count ? (size_t)event : list->count;
    size_t first;
    VR_LOWER_BOUND(first, i, 0, list->count, list->event[i] < event);
    return first;
}

// --- the filter -----------------------------------------------------------------------------------------------------------
static enum vram_status read_actions(const struct vr_query *query, struct filter *filter) {
    const char *text = vr_parameter_text(query->parameters, "action");
    filter->actions = text == NULL ? UINT32_MAX : 0;
    while (text != NULL && *text != '\0') {
        const size_t length = strcspn(text, ",");
        unsigned action = 0;
        while (action < VR_ACTION_COUNT && (strlen(vr_action_name((enum vr_action)action)) != length ||
                                            memcmp(vr_action_name((enum vr_action)action), text, length) != 0))
            action++;
        if (action == VR_ACTION_COUNT)
            return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "events: unknown action '%.*s'",
                           (int)(length < 40 ? length : 40), text);
        filter->actions |= 1u << action;
        text += length + (text[length] == ',');
    }
    return VRAM_OK;
}

static enum vram_status read_address(const struct vr_query *query, struct filter *filter) {
    const char *text = vr_parameter_text(query->parameters, "address");
    if (text == NULL) return VRAM_OK;
    char *end;
    filter->by_address = true;
    filter->address = strtoull(text, &end, 16);
    if (end == text || *end != '\0')
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "events: 'address' must be hexadecimal digits");
    return VRAM_OK;
}

static enum vram_status read_filter_text(const struct vr_query *query, struct vr_explored_recording *recording,
                                         struct vr_explored_device *device, struct filter *filter) {
    const char *text = vr_parameter_text(query->parameters, "text");
    const struct vr_lifetimes *lifetimes = NULL;
    const struct vr_event_rows *rows = NULL;
    struct vram_report_sum found = {0};
    int64_t regex = 0;
    VR_TRY(vr_parameter_whole(query->parameters, "regex", 0, 1, 0, &regex));
    if (text == NULL || *text == '\0') return VRAM_OK;
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ALLOCATED, &lifetimes));
    VR_TRY(vr_explored_rows(device, VR_LIFETIME_ALLOCATED, &rows));
    VR_TRY(vr_search_init(&filter->search, vr_recording_model(recording->recording), text, regex == 1, query->error));
    filter->by_text = true;
    filter->found = calloc(lifetimes->count / 8 + 1, 1);
    if (filter->found == NULL) return VRAM_NO_HOST_MEMORY;
    vr_search_rows(&filter->search, device->view, lifetimes, filter->found, &found);
    return VRAM_OK;
}

static enum vram_status read_filter(const struct vr_query *query, struct vr_explored_recording *recording,
                                    struct vr_explored_device *device, struct filter *filter) {
    const struct vr_parameters *parameters = query->parameters;
    int64_t least = 0, most = 0;
    VR_TRY(read_actions(query, filter));
    VR_TRY(read_address(query, filter));
    VR_TRY(vr_parameter_whole(parameters, "least", 0, INT64_MAX, 0, &least));
    VR_TRY(vr_parameter_whole(parameters, "most", 0, INT64_MAX, INT64_MAX, &most));
    filter->by_stream = vr_parameter_text(parameters, "stream") != NULL;
    VR_TRY(vr_parameter_whole(parameters, "stream", INT64_MIN, INT64_MAX, 0, &filter->stream));
    filter->least = (uint64_t)least;
    filter->most = most == INT64_MAX ? UINT64_MAX : (uint64_t)most;
    return read_filter_text(query, recording, device, filter);
}

static enum vram_status text_lets_through(struct filter *filter, struct vr_explored_device *device, size_t event, bool *through) {
    size_t row = SIZE_MAX;
    *through = vr_search_stack(&filter->search, device->view->history->stack[event]);
    if (*through) return VRAM_OK;
    VR_TRY(vr_explored_allocation_of(device, event, &row));
    *through = row != SIZE_MAX && (filter->found[row / 8] >> row % 8 & 1) != 0;
    return VRAM_OK;
}

// Returns whether the event's memory has the address. An out-of-memory event has the driver's free bytes instead of an address.
static bool event_holds(const struct vr_history *history, size_t event, uint64_t address) {
    if (history->action[event] == VR_ACTION_OOM) return false;
    const uint64_t size = history->size_bytes[event];
    return address == history->address[event] || (address > history->address[event] && address - history->address[event] < size);
}

static bool lets_through(const struct filter *filter, const struct vr_history *history, size_t event) {
    if ((filter->actions >> history->action[event] & 1) == 0) return false;
    if (history->size_bytes[event] < filter->least || history->size_bytes[event] > filter->most) return false;
    if (filter->by_stream && (int64_t)vr_entry_stream(history, event) != filter->stream) return false;
    return !filter->by_address || event_holds(history, event, filter->address);
}

static enum vram_status choose_events(struct filter *filter, struct vr_explored_device *device, struct kept *kept) {
    const struct vr_history *history = device->view->history;
    for (size_t i = 0; i < history->count; i++) {
        if (!lets_through(filter, history, i)) continue;
        if (filter->by_text) {
            bool through = false;
            VR_TRY(text_lets_through(filter, device, i, &through));
            if (!through) continue;
        }
        VR_TRY(VR_GROW(kept, event, kept->count + 1));
        kept->event[kept->count++] = (uint32_t)i;
    }
    return VRAM_OK;
}

// Joins the filter's parameters into one text; "" if there are none.
static enum vram_status filter_key(const struct vr_parameters *parameters, struct vr_text *key) {
    for (size_t i = 0; i < VR_COUNT_OF(filter_keys); i++) {
        const char *value = vr_parameter_text(parameters, filter_keys[i]);
        if (value != NULL && *value != '\0') vr_text_printf(key, "%s=%s\n", filter_keys[i], value);
    }
    return vr_text_status(key);
}

static enum vram_status make_selection(const struct vr_query *query, struct vr_explored_recording *recording,
                                       struct vr_explored_device *device, struct kept *kept) {
    struct filter filter = {.actions = 0};
    enum vram_status status = read_filter(query, recording, device, &filter);
    if (status == VRAM_OK) status = choose_events(&filter, device, kept);
    if (filter.by_text) vr_search_release(&filter.search);
    free(filter.found);
    return status;
}

// Finds the list by its key, or makes it, replacing the least recently used one; moves it to the front.
static enum vram_status find_or_make(const struct vr_query *query, struct vr_explored_recording *recording,
                                     struct vr_explored_device *device, const char *key) {
    struct kept *kept = device->event_selections->kept;
    size_t at = 0;
    while (at < KEPT && (kept[at].key == NULL || strcmp(kept[at].key, key) != 0)) at++;
    struct kept made = {.key = NULL};
    if (at < KEPT) {
        made = kept[at];
    } else {
        enum vram_status status = make_selection(query, recording, device, &made);
        made.key = status == VRAM_OK ? malloc(strlen(key) + 1) : NULL;
        if (status == VRAM_OK && made.key == NULL) status = VRAM_NO_HOST_MEMORY;
        if (status != VRAM_OK) {
            release_kept(&made);
            return status;
        }
        memcpy(made.key, key, strlen(key) + 1);
        at = KEPT - 1;
        release_kept(&kept[at]);
    }
    memmove(kept + 1, kept, at * sizeof *kept);
    kept[0] = made;
    return VRAM_OK;
}

enum vram_status vr_select_events(const struct vr_query *query, struct vr_explored_recording *recording, struct vr_explored_device *device,
                                  struct vr_event_selection *list) {
    if (device->view->history->count > UINT32_MAX) return VRAM_LIMIT;
    if (device->event_selections == NULL) device->event_selections = calloc(1, sizeof *device->event_selections);
    if (device->event_selections == NULL) return VRAM_NO_HOST_MEMORY;
    struct vr_text key = {0};
    enum vram_status status = filter_key(query->parameters, &key);
    *list = (struct vr_event_selection){.count = device->view->history->count};
    if (status == VRAM_OK && key.length != 0) {
        status = find_or_make(query, recording, device, key.bytes);
        if (status == VRAM_OK)
            *list = (struct vr_event_selection){device->event_selections->kept[0].event, device->event_selections->kept[0].count};
        // An empty list has no array, but NULL would mean all events.
        static const uint32_t none[1];
        if (list->event == NULL && status == VRAM_OK) list->event = none;
    }
    vr_text_release(&key);
    return status;
}
