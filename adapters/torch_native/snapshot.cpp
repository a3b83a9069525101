// Returns the allocator's state in PyTorch's structures.
#include "native.h"

#include <cstdlib>
#include <cstring>

#include "../torch/inside.h"
#include "history.h"

namespace vram_native {

namespace {

// The results of a walk over a device.
struct Gathered {
    std::vector<Segment> *segments;
    PoolId pool;           // restricts to this pool; (0, 0): all
    uint64_t next_address; // where the next block of the same segment begins
    uint64_t segment_number;
    size_t active_bytes;
};

Segment begin_segment(const struct vram_block_view &view) {
    Segment segment;
    segment.device = static_cast<Device>(view.block.device);
    segment.address = view.block.address;
    segment.stream = reinterpret_cast<decltype(segment.stream)>(view.block.stream);
    segment.is_large = !view.small_pool;
    segment.is_expandable = view.block.expandable;
    segment.owner_private_pool_id = id_of(view.block.pool);
    segment.context_when_allocated = context_of(view.segment_context);
    return segment;
}

Block make_block(const struct vram_block_view &view) {
    Block block;
    block.size = view.block.size_bytes;
    block.requested_size = view.block.requested_bytes;
    block.allocated = view.state == VRAM_BLOCK_ALLOCATED;
    block.active = view.state != VRAM_BLOCK_FREE;
    block.context_when_allocated = context_of(view.context);
    return block;
}

bool visit(const struct vram_block_view *view, void *user) {
    auto *gathered = static_cast<Gathered *>(user);
    const PoolId id = id_of(view->block.pool);
    if ((gathered->pool.first != 0 || gathered->pool.second != 0) && id != gathered->pool) return true;
    // In an expandable segment each range without holes is one segment.
    const bool first =
        gathered->segments->empty() || view->block.address != gathered->next_address || view->segment_number != gathered->segment_number;
    if (first) gathered->segments->push_back(begin_segment(*view));
    Segment &segment = gathered->segments->back();
    const Block &block = segment.blocks.emplace_back(make_block(*view));
    segment.total_size += block.size;
    if (block.allocated) segment.allocated_size += block.size;
    if (block.active) {
        segment.active_size += block.size;
        segment.requested_size += block.requested_size;
        gathered->active_bytes += block.size;
    }
    gathered->next_address = view->block.address + view->block.size_bytes;
    gathered->segment_number = view->segment_number;
    return true;
}

using Config = decltype(Snapshot::config_metadata);

bool is_true(const std::string &value) { return value == "True" || value == "true" || value == "1"; }

// Parses divisors by power of two, "[256:1,512:2,>:4]" or one number for all. PyTorch has 16 of them, from 1 MiB.
void read_roundups(const std::string &value, std::vector<size_t> *divisions) {
    divisions->assign(16, 0);
    if (value.empty() || value[0] != '[') {
        divisions->assign(16, static_cast<size_t>(std::strtoull(value.c_str(), nullptr, 10)));
        return;
    }
    size_t next = 0;
    for (size_t at = 1; at < value.size();) {
        const size_t colon = value.find(':', at), end = value.find_first_of(",]", at);
        if (colon == std::string::npos || end == std::string::npos) break;
        const auto divisor = static_cast<size_t>(std::strtoull(value.c_str() + colon + 1, nullptr, 10));
        const auto megabytes = std::strtoull(value.c_str() + at, nullptr, 10);
        size_t index = value[at] == '>' ? next : 0;
        while (value[at] != '>' && index < 15 && (1ULL << (index + 1)) <= megabytes) index++;
        (*divisions)[index] = divisor;
        next = index + 1;
        if (value[at] == '>')
            for (; index < 16; index++) (*divisions)[index] = divisor;
        at = end + 1;
    }
}

template <typename Made> void set_stream_reuse(Made *config, bool value) {
    if constexpr (requires { config->graph_capture_record_stream_reuse; }) config->graph_capture_record_stream_reuse = value;
}

// Sets the limits of pinned memory, new in 2.15. Leaves them unset if the options are absent.
template <typename Made> void set_pinned_limits(Made *config, size_t round, size_t cached) {
    if constexpr (requires { config->max_round_threshold; }) {
        if (round != 0) config->max_round_threshold = round;
        if (cached != 0) config->max_cached_size = cached;
    }
}

// Stores an option in force in PyTorch's field for it.
bool read_option(const struct vram_option *option, void *user) {
    auto *config = static_cast<Config *>(user);
    const std::string key = option->key, value = option->value;
    const auto megabytes = [&value] { return static_cast<size_t>(std::strtoull(value.c_str(), nullptr, 10)) << 20; };
    if (key == "garbage_collection_threshold") config->garbage_collection_threshold = std::strtod(value.c_str(), nullptr);
    if (key == "max_split_size_mb" && !option->is_default) config->max_split_size = megabytes();
    if (key == "pinned_num_register_threads") config->pinned_num_register_threads = std::strtoull(value.c_str(), nullptr, 10);
    if (key == "expandable_segments") config->expandable_segments = is_true(value);
    if (key == "release_lock_on_cudamalloc") config->release_lock_on_malloc = is_true(value);
    if (key == "pinned_use_cuda_host_register") config->pinned_use_host_register = is_true(value);
    if (key == "roundup_power2_divisions") read_roundups(value, &config->roundup_power2_divisions);
    if (key == "graph_capture_record_stream_reuse") set_stream_reuse(config, is_true(value));
    if (key == "pinned_max_round_threshold_mb" && !option->is_default) set_pinned_limits(config, megabytes(), 0);
    if (key == "pinned_max_cached_size_mb" && !option->is_default) set_pinned_limits(config, 0, megabytes());
    return true;
}

// Returns the options that the user wrote, without the PyTorch rules that we put in front.
std::string without_rules(const std::string &text) {
    const std::string key = "pytorch:";
    if (text.compare(0, key.size(), key) != 0 || strncmp(vr_torch_environment_options(), key.c_str(), key.size()) == 0) return text;
    const size_t comma = text.find(',');
    return comma == std::string::npos ? "" : text.substr(comma + 1);
}

Config read_config() {
    const std::string text = configuration();
    Config config = {};
    config.max_split_size = SIZE_MAX;
    config.roundup_power2_divisions.assign(16, 0);
    set_pinned_limits(&config, SIZE_MAX, SIZE_MAX);
    check(vram_options_in_force(made, read_option, &config), "settings");
    config.last_allocator_settings = without_rules(text);
    return config;
}

} // namespace

Snapshot Native::snapshot() { return snapshot({0, 0}, true); }

Snapshot Native::snapshot(PoolId id) { return snapshot(id, true); }

Snapshot Native::snapshot(PoolId id, bool traces) {
    Snapshot taken;
    if (traces) taken.external_annotations = annotations();
    for (int device = 0; device < device_count(); device++) {
        if (traces) taken.device_traces.push_back(events_of(static_cast<Device>(device)));
        std::vector<Segment> segments;
        Gathered gathered = {&segments, id, 0, 0, 0};
        check(vram_walk(made, static_cast<uint32_t>(device), visit, &gathered), "snapshot");
        note_snapshot(static_cast<Device>(device), gathered.active_bytes, id);
        taken.segments.insert(taken.segments.end(), std::make_move_iterator(segments.begin()), std::make_move_iterator(segments.end()));
    }
    taken.config_metadata = read_config();
    return taken;
}

} // namespace vram_native
