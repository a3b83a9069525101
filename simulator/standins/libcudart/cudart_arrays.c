// Arrays, and texture and surface objects.
#include <string.h>

#include "runtime.h"

// ---- Arrays and mipmapped arrays, and three-dimensional copies, which may involve arrays.

// cudaMemcpy3DPeerParms.
struct rt_memcpy3d_peer {
    uint64_t from_array;
    struct rt_position from_at;
    struct rt_pitched from;
    int from_device;
    uint64_t to_array;
    struct rt_position to_at;
    struct rt_pitched to;
    int to_device;
    struct rt_extent extent;
};

// --- elements -------------------------------------------------------------------------------------------------------------------------
enum { SIGNED, UNSIGNED, FLOATING, NONE, FIRST_NAMED };

// Channel kinds with a format of their own, starting with FIRST_NAMED: driver's format, channels and bits per channel.
static const struct {
    unsigned char format, channels, bits;
} named[] = {
    {0xb0, 3, 8},                                                                            // NV12
    {0xc0, 1, 8},  {0xc1, 2, 8},  {0xc2, 4, 8}, {0xc3, 1, 16}, {0xc4, 2, 16}, {0xc5, 4, 16}, // unsigned normalized
    {0xc6, 1, 8},  {0xc7, 2, 8},  {0xc8, 4, 8}, {0xc9, 1, 16}, {0xca, 2, 16}, {0xcb, 4, 16}, // signed normalized
    {0x91, 4, 8},  {0x92, 4, 8},  {0x93, 4, 8}, {0x94, 4, 8},  {0x95, 4, 8},  {0x96, 4, 8},  // BC1 to BC3
    {0x97, 1, 8},  {0x98, 1, 8},  {0x99, 2, 8}, {0x9a, 2, 8},                                // BC4, BC5
    {0x9b, 3, 16}, {0x9c, 3, 16}, {0x9d, 4, 8}, {0x9e, 4, 8},                                // BC6H, BC7
    {0x50, 4, 10},                                                                           // 10, 10, 10 and 2 bits
};
enum { NAMED = sizeof named / sizeof named[0] };

// Formats of plain numbers with 8, 16 and 32 bits; 0: none.
static const unsigned char plain[3][3] = {{0x08, 0x09, 0x0a}, {0x01, 0x02, 0x03}, {0, 0x10, 0x20}};

int rt_format_of(const struct rt_channel *channel, struct rt_array_descriptor *array) {
    if (channel->kind >= FIRST_NAMED && channel->kind < FIRST_NAMED + NAMED) {
        array->format = named[channel->kind - FIRST_NAMED].format;
        array->channels = named[channel->kind - FIRST_NAMED].channels;
        return RT_SUCCESS;
    }
    const int bits[4] = {channel->x, channel->y, channel->z, channel->w};
    unsigned channels = 0;
    while (channels < 4 && bits[channels] != 0) channels++;
    const int size = bits[0] == 8 ? 0 : bits[0] == 16 ? 1 : bits[0] == 32 ? 2 : -1;
    if (channel->kind < SIGNED || channel->kind > FLOATING || size < 0 || channels == 3 || plain[channel->kind][size] == 0)
        return RT_INVALID_CHANNEL;
    for (unsigned i = 1; i < channels; i++)
        if (bits[i] != bits[0]) return RT_INVALID_CHANNEL;
    array->format = plain[channel->kind][size];
    array->channels = channels;
    return RT_SUCCESS;
}

struct rt_channel rt_channel_of(const struct rt_array_descriptor *array) {
    int bits = 0, kind = NONE;
    for (int i = 0; i < NAMED; i++)
        if (named[i].format == array->format) kind = FIRST_NAMED + i, bits = named[i].bits;
    for (int i = 0; i < 9; i++)
        if (plain[i / 3][i % 3] == array->format) kind = i / 3, bits = 8 << i % 3;
    struct rt_channel channel = {.kind = kind};
    int *const all[4] = {&channel.x, &channel.y, &channel.z, &channel.w};
    for (unsigned i = 0; i < array->channels && i < 4; i++) *all[i] = bits;
    return channel;
}

static size_t element_bytes(const struct rt_array_descriptor *array) {
    const struct rt_channel channel = rt_channel_of(array);
    const int bits = channel.x + channel.y + channel.z + channel.w;
    return bits == 0 ? 1 : (size_t)bits / 8;
}

struct rt_channel cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
    return (struct rt_channel){x, y, z, w, kind};
}

// --- arrays ---------------------------------------------------------------------------------------------------------
static int make_array(const struct rt_driver *driver, uint64_t *made, const struct rt_channel *channel, struct rt_extent extent,
                      unsigned flags) {
    struct rt_array_descriptor array = {.width = extent.width, .height = extent.height, .depth = extent.depth, .flags = flags};
    const int error = made == NULL || channel == NULL ? RT_INVALID_VALUE : rt_format_of(channel, &array);
    return error != RT_SUCCESS ? error : driver->array_create(made, &array);
}

int cudaMallocArray(uint64_t *array, const struct rt_channel *channel, size_t width, size_t height, unsigned flags) {
    RT_CALL(make_array(driver, array, channel, (struct rt_extent){width, height, 0}, flags));
}

int cudaMalloc3DArray(uint64_t *array, const struct rt_channel *channel, struct rt_extent extent, unsigned flags) {
    RT_CALL(make_array(driver, array, channel, extent, flags));
}

static int make_mipmaps(const struct rt_driver *driver, uint64_t *made, const struct rt_channel *channel, struct rt_extent extent,
                        unsigned levels, unsigned flags) {
    struct rt_array_descriptor array = {.width = extent.width, .height = extent.height, .depth = extent.depth, .flags = flags};
    const int error = made == NULL || channel == NULL ? RT_INVALID_VALUE : rt_format_of(channel, &array);
    return error != RT_SUCCESS ? error : driver->mipmapped_array_create(made, &array, levels);
}

int cudaMallocMipmappedArray(uint64_t *array, const struct rt_channel *channel, struct rt_extent extent, unsigned levels, unsigned flags) {
    RT_CALL(make_mipmaps(driver, array, channel, extent, levels, flags));
}

static int array_info(const struct rt_driver *driver, struct rt_channel *channel, struct rt_extent *extent, unsigned *flags,
                      uint64_t array) {
    struct rt_array_descriptor found = {0};
    const int error = driver->array_get_descriptor(&found, array);
    if (error != RT_SUCCESS) return error;
    if (channel != NULL) *channel = rt_channel_of(&found);
    if (extent != NULL) *extent = (struct rt_extent){found.width, found.height, found.depth};
    if (flags != NULL) *flags = found.flags;
    return RT_SUCCESS;
}

int cudaArrayGetInfo(struct rt_channel *channel, struct rt_extent *extent, unsigned *flags, uint64_t array) {
    RT_CALL(array_info(driver, channel, extent, flags, array));
}

int cudaGetChannelDesc(struct rt_channel *channel, uint64_t array) {
    RT_CALL(channel == NULL ? RT_INVALID_VALUE : array_info(driver, channel, NULL, NULL, array));
}

int cudaDeviceGetTexture1DLinearMaxWidth(size_t *elements, const struct rt_channel *channel, int device) {
    struct rt_array_descriptor array = {0};
    RT_CALL(channel == NULL || rt_format_of(channel, &array) != RT_SUCCESS
                ? RT_INVALID_VALUE
                : driver->device_get_texture1d_width(elements, array.format, array.channels, device));
}

// --- copies in three dimensions -------------------------------------------------------------------------------------
struct rt_copy rt_copy_line(uint64_t to, uint64_t from, size_t bytes) {
    const struct rt_copy copy = {.from = {.memory_type = RT_MEMORY_UNIFIED, .device = from, .pitch = bytes},
                                 .to = {.memory_type = RT_MEMORY_UNIFIED, .device = to, .pitch = bytes},
                                 .width_bytes = bytes,
                                 .rows = 1,
                                 .planes = 1};
    return copy;
}

// Makes one side of a copy. *element is set to the bytes of an array's element and not changed for memory.
static int side_of_array(const struct rt_driver *driver, struct rt_copy_side *side, uint64_t array, struct rt_position at,
                         struct rt_pitched memory, size_t *element) {
    struct rt_array_descriptor found = {0};
    if (array != 0) {
        const int error = driver->array_get_descriptor(&found, array);
        if (error != RT_SUCCESS) return error;
        *element = element_bytes(&found);
    }
    *side = (struct rt_copy_side){.x_bytes = at.x, .y = at.y, .z = at.z, .memory_type = array != 0 ? RT_MEMORY_ARRAY : RT_MEMORY_UNIFIED};
    if (array != 0) {
        side->array = array;
        side->x_bytes *= *element;
    } else {
        side->device = rt_address(memory.pointer);
        side->pitch = memory.pitch;
        side->rows = memory.height;
    }
    return RT_SUCCESS;
}

static int sides_of(const struct rt_driver *driver, const struct rt_memcpy3d *wanted, struct rt_copy *copy) {
    size_t element = 1;
    int error = side_of_array(driver, &copy->from, wanted->from_array, wanted->from_at, wanted->from, &element);
    if (error == RT_SUCCESS) error = side_of_array(driver, &copy->to, wanted->to_array, wanted->to_at, wanted->to, &element);
    if (__builtin_mul_overflow(wanted->extent.width, element, &copy->width_bytes)) error = RT_INVALID_VALUE;
    copy->rows = wanted->extent.height;
    copy->planes = wanted->extent.depth;
    return error;
}

int rt_copy_of(const struct rt_driver *driver, const struct rt_memcpy3d *wanted, struct rt_copy *copy) {
    enum { MOST_KIND = 4 };
    if (wanted == NULL) return RT_INVALID_VALUE;
    if (wanted->kind < 0 || wanted->kind > MOST_KIND) return RT_INVALID_MEMCPY_DIRECTION;
    return sides_of(driver, wanted, copy);
}

static int side_back(const struct rt_driver *driver, const struct rt_copy_side *side, uint64_t *array, struct rt_position *at,
                     struct rt_pitched *memory, size_t *element) {
    struct rt_array_descriptor found = {0};
    if (side->array != 0) {
        const int error = driver->array_get_descriptor(&found, side->array);
        if (error != RT_SUCCESS) return error;
        *element = element_bytes(&found);
    }
    *array = side->array;
    *at = (struct rt_position){side->array != 0 ? side->x_bytes / *element : side->x_bytes, side->y, side->z};
    const uint64_t address = side->device != 0 ? side->device : rt_address(side->host);
    *memory = (struct rt_pitched){(void *)(uintptr_t)address, side->pitch, side->pitch, side->rows};
    return RT_SUCCESS;
}

int rt_copy_back(const struct rt_driver *driver, const struct rt_copy *copy, struct rt_memcpy3d *answer) {
    enum { BY_ADDRESS = 4 };
    struct rt_memcpy3d found = {.kind = BY_ADDRESS};
    size_t element = 1;
    int error = side_back(driver, &copy->from, &found.from_array, &found.from_at, &found.from, &element);
    if (error == RT_SUCCESS) error = side_back(driver, &copy->to, &found.to_array, &found.to_at, &found.to, &element);
    found.extent = (struct rt_extent){copy->width_bytes / element, copy->rows, copy->planes};
    if (error == RT_SUCCESS) *answer = found;
    return error;
}

static int copy_3d(const struct rt_driver *driver, const struct rt_memcpy3d *wanted, bool wait, uint64_t stream) {
    struct rt_copy copy = {0};
    int error = rt_copy_of(driver, wanted, &copy);
    if (error != RT_SUCCESS || copy.width_bytes == 0 || copy.rows == 0 || copy.planes == 0) return error;
    if (wait && stream == 0) return driver->memcpy_3d(&copy);
    error = driver->memcpy_3d_async(&copy, stream);
    return error == RT_SUCCESS && wait ? driver->stream_synchronize(stream) : error;
}

RT_DEFAULT_CALL(cudaMemcpy3D, (const struct rt_memcpy3d *wanted), copy_3d(driver, wanted, true, on))
RT_STREAM_CALL(cudaMemcpy3DAsync, (const struct rt_memcpy3d *wanted, void *stream), copy_3d(driver, wanted, false, on))

static int copy_3d_peer(const struct rt_driver *driver, const struct rt_memcpy3d_peer *wanted, bool wait, uint64_t stream) {
    struct rt_copy copy = {0};
    if (wanted == NULL) return RT_INVALID_VALUE;
    const struct rt_memcpy3d plain_copy = {wanted->from_array, wanted->from_at, wanted->from,   wanted->to_array,
                                           wanted->to_at,      wanted->to,      wanted->extent, 0};
    int error = sides_of(driver, &plain_copy, &copy);
    if (error == RT_SUCCESS) error = rt_primary(wanted->from_device, &copy.from.context);
    if (error == RT_SUCCESS) error = rt_primary(wanted->to_device, &copy.to.context);
    if (error != RT_SUCCESS) return error;
    if (wait && stream == 0) return driver->memcpy_3d_peer(&copy);
    error = driver->memcpy_3d_peer_async(&copy, stream);
    return error == RT_SUCCESS && wait ? driver->stream_synchronize(stream) : error;
}

RT_DEFAULT_CALL(cudaMemcpy3DPeer, (const struct rt_memcpy3d_peer *wanted), copy_3d_peer(driver, wanted, true, on))
RT_STREAM_CALL(cudaMemcpy3DPeerAsync, (const struct rt_memcpy3d_peer *wanted, void *stream), copy_3d_peer(driver, wanted, false, on))

// --- rows of arrays -------------------------------------------------------------------------------------------------
struct rows {
    uint64_t to_array, from_array;
    size_t to_x_bytes, to_y, from_x_bytes, from_y; // offsets in the arrays
    void *to;
    size_t to_pitch;
    const void *from;
    size_t from_pitch, width_bytes, rows;
};

static int copy_array_rows(const struct rt_driver *driver, const struct rows *rows, bool wait, uint64_t stream) {
    struct rt_copy copy = rt_copy_line(rt_address(rows->to), rt_address(rows->from), rows->width_bytes);
    if (rows->width_bytes == 0 || rows->rows == 0) return RT_SUCCESS;
    copy.to.pitch = rows->to_pitch;
    copy.from.pitch = rows->from_pitch;
    copy.to.rows = copy.from.rows = copy.rows = rows->rows;
    if (rows->to_array != 0)
        copy.to =
            (struct rt_copy_side){.memory_type = RT_MEMORY_ARRAY, .array = rows->to_array, .x_bytes = rows->to_x_bytes, .y = rows->to_y};
    if (rows->from_array != 0)
        copy.from = (struct rt_copy_side){
            .memory_type = RT_MEMORY_ARRAY, .array = rows->from_array, .x_bytes = rows->from_x_bytes, .y = rows->from_y};
    if (wait && stream == 0) return driver->memcpy_3d(&copy);
    const int error = driver->memcpy_3d_async(&copy, stream);
    return error == RT_SUCCESS && wait ? driver->stream_synchronize(stream) : error;
}

#define TO_ARRAY                                                                                                                           \
    (&(const struct rows){                                                                                                                 \
        .to_array = to, .to_x_bytes = x, .to_y = y, .from = from, .from_pitch = pitch, .width_bytes = width, .rows = height})
RT_DEFAULT_CALL(cudaMemcpy2DToArray,
                (uint64_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height, int kind),
                ((void)kind, copy_array_rows(driver, TO_ARRAY, true, on)))
RT_STREAM_CALL(cudaMemcpy2DToArrayAsync,
               (uint64_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height, int kind, void *stream),
               ((void)kind, copy_array_rows(driver, TO_ARRAY, false, on)))

#define FROM_ARRAY                                                                                                                         \
    (&(const struct rows){                                                                                                                 \
        .from_array = from, .from_x_bytes = x, .from_y = y, .to = to, .to_pitch = pitch, .width_bytes = width, .rows = height})
RT_DEFAULT_CALL(cudaMemcpy2DFromArray, (void *to, size_t pitch, uint64_t from, size_t x, size_t y, size_t width, size_t height, int kind),
                ((void)kind, copy_array_rows(driver, FROM_ARRAY, true, on)))
RT_STREAM_CALL(cudaMemcpy2DFromArrayAsync,
               (void *to, size_t pitch, uint64_t from, size_t x, size_t y, size_t width, size_t height, int kind, void *stream),
               ((void)kind, copy_array_rows(driver, FROM_ARRAY, false, on)))
RT_DEFAULT_CALL(cudaMemcpy2DArrayToArray,
                (uint64_t to, size_t x, size_t y, uint64_t from, size_t from_x, size_t from_y, size_t width, size_t height, int kind),
                ((void)kind, copy_array_rows(driver,
                                             &(const struct rows){.to_array = to,
                                                                  .to_x_bytes = x,
                                                                  .to_y = y,
                                                                  .from_array = from,
                                                                  .from_x_bytes = from_x,
                                                                  .from_y = from_y,
                                                                  .width_bytes = width,
                                                                  .rows = height},
                                             true, on)))

// Copies `bytes` of consecutive rows of an array: the rest of the first row, whole rows, then part of the last. `run` holds the array, the
// position in it and the address of the other side; its width, rows and pitch are ignored.
static int copy_run(const struct rt_driver *driver, const struct rows *run, size_t bytes, bool wait, uint64_t stream) {
    struct rt_array_descriptor array = {0};
    int error = driver->array_get_descriptor(&array, run->to_array != 0 ? run->to_array : run->from_array);
    if (error != RT_SUCCESS) return error;
    const size_t row_bytes = array.width * element_bytes(&array);
    struct rows piece = *run;
    while (bytes > 0 && error == RT_SUCCESS) {
        const size_t x = piece.to_x_bytes + piece.from_x_bytes; // one of them is 0
        if (x >= row_bytes) return RT_INVALID_VALUE;
        const bool whole = x == 0 && bytes >= row_bytes;
        const size_t left = row_bytes - x;
        piece.width_bytes = whole ? row_bytes : bytes < left ? bytes : left;
        piece.rows = whole ? bytes / row_bytes : 1;
        piece.to_pitch = piece.from_pitch = piece.width_bytes;
        error = copy_array_rows(driver, &piece, wait, stream);
        const size_t done = piece.width_bytes * piece.rows;
        if (piece.to_array != 0) {
            piece.to_y += piece.rows;
            piece.from = (const char *)piece.from + done;
        } else {
            piece.from_y += piece.rows;
            piece.to = (char *)piece.to + done;
        }
        piece.to_x_bytes = piece.from_x_bytes = 0;
        bytes -= done;
    }
    return error;
}

#define RUN (&(const struct rows){.to_array = to, .to_x_bytes = x, .to_y = y, .from = from})
RT_DEFAULT_CALL(cudaMemcpyToArray, (uint64_t to, size_t x, size_t y, const void *from, size_t bytes, int kind),
                ((void)kind, copy_run(driver, RUN, bytes, true, on)))
RT_STREAM_CALL(cudaMemcpyToArrayAsync, (uint64_t to, size_t x, size_t y, const void *from, size_t bytes, int kind, void *stream),
               ((void)kind, copy_run(driver, RUN, bytes, false, on)))
#define RUN_BACK (&(const struct rows){.from_array = from, .from_x_bytes = x, .from_y = y, .to = to})
RT_DEFAULT_CALL(cudaMemcpyFromArray, (void *to, uint64_t from, size_t x, size_t y, size_t bytes, int kind),
                ((void)kind, copy_run(driver, RUN_BACK, bytes, true, on)))
RT_STREAM_CALL(cudaMemcpyFromArrayAsync, (void *to, uint64_t from, size_t x, size_t y, size_t bytes, int kind, void *stream),
               ((void)kind, copy_run(driver, RUN_BACK, bytes, false, on)))

// ---- Texture and surface objects. The runtime describes formats by channels and has one member per setting; the driver has formats and
// flags.

enum { ARRAY, MIPMAPS, LINEAR, PITCH2D }; // kinds of resources, with the same values in the runtime and the driver

// cudaResourceDesc.
struct rt_resource {
    int kind;
    union {
        uint64_t array;
        struct {
            uint64_t address;
            struct rt_channel channel;
            size_t bytes;
        } linear;
        struct {
            uint64_t address;
            struct rt_channel channel;
            size_t width, height, pitch;
        } pitch2d;
        int reserved[32];
    };
    unsigned flags; // since CUDA 13
};
// CUDA_RESOURCE_DESC.
struct driver_resource {
    int kind;
    union {
        uint64_t array;
        struct {
            uint64_t address;
            int format;
            unsigned channels;
            size_t bytes;
        } linear;
        struct {
            uint64_t address;
            int format;
            unsigned channels;
            size_t width, height, pitch;
        } pitch2d;
        int reserved[32];
    };
    unsigned flags;
};

// cudaTextureDesc.
struct rt_texture {
    int address[3];
    int filter, read, srgb;
    float border[4];
    int normalized;
    unsigned anisotropy;
    int mipmap_filter;
    float bias, least_level, most_level;
    int no_trilinear, seamless;
};
// CUDA_TEXTURE_DESC.
struct driver_texture {
    int address[3];
    int filter;
    unsigned flags, anisotropy;
    int mipmap_filter;
    float bias, least_level, most_level;
    float border[4];
    int reserved[12];
};
enum { READ_AS_INTEGER = 1, NORMALIZED = 2, SRGB = 16, NO_TRILINEAR = 32, SEAMLESS = 64 };

static int resource_for_driver(const struct rt_resource *wanted, struct driver_resource *resource) {
    struct rt_array_descriptor format = {0};
    *resource = (struct driver_resource){.kind = wanted->kind};
    switch (wanted->kind) {
    case ARRAY:
    case MIPMAPS: resource->array = wanted->array; return RT_SUCCESS;
    case LINEAR:
        if (rt_format_of(&wanted->linear.channel, &format) != RT_SUCCESS) return RT_INVALID_CHANNEL;
        resource->linear.address = wanted->linear.address;
        resource->linear.format = format.format;
        resource->linear.channels = format.channels;
        resource->linear.bytes = wanted->linear.bytes;
        return RT_SUCCESS;
    case PITCH2D:
        if (rt_format_of(&wanted->pitch2d.channel, &format) != RT_SUCCESS) return RT_INVALID_CHANNEL;
        resource->pitch2d.address = wanted->pitch2d.address;
        resource->pitch2d.format = format.format;
        resource->pitch2d.channels = format.channels;
        resource->pitch2d.width = wanted->pitch2d.width;
        resource->pitch2d.height = wanted->pitch2d.height;
        resource->pitch2d.pitch = wanted->pitch2d.pitch;
        return RT_SUCCESS;
    default: return RT_INVALID_VALUE;
    }
}

// cudaResourceViewDesc, with the same layout as the driver's structure.
struct rt_view {
    int format;
    size_t width, height, depth;
    unsigned levels[2], layers[2];
    unsigned reserved[16]; // since CUDA 13
};

// Bytes of these structures in the program's version of CUDA: before 13 they end with the last used member.
#if RT_MAJOR >= 13
enum { RESOURCE_BYTES = sizeof(struct rt_resource), VIEW_BYTES = sizeof(struct rt_view) };
#else
enum { RESOURCE_BYTES = 64, VIEW_BYTES = offsetof(struct rt_view, reserved) };
#endif
// Version 1 of the texture settings (CUDA 11) ends before `seamless`.
#if RT_MAJOR >= 12
enum { TEXTURE_BYTES = sizeof(struct rt_texture) };
#else
enum { TEXTURE_BYTES = offsetof(struct rt_texture, seamless) };
#endif

static void resource_from_driver(const struct driver_resource *found, struct rt_resource *answer) {
    struct rt_resource resource = {.kind = found->kind};
    struct rt_array_descriptor format = {.format = found->linear.format, .channels = found->linear.channels}; // at the same offset in both
    if (found->kind == ARRAY || found->kind == MIPMAPS) resource.array = found->array;
    if (found->kind == LINEAR) {
        resource.linear.address = found->linear.address;
        resource.linear.channel = rt_channel_of(&format);
        resource.linear.bytes = found->linear.bytes;
    }
    if (found->kind == PITCH2D) {
        resource.pitch2d.address = found->pitch2d.address;
        resource.pitch2d.channel = rt_channel_of(&format);
        resource.pitch2d.width = found->pitch2d.width;
        resource.pitch2d.height = found->pitch2d.height;
        resource.pitch2d.pitch = found->pitch2d.pitch;
    }
    memcpy(answer, &resource, RESOURCE_BYTES);
}

static struct driver_texture texture_for_driver(const struct rt_texture *wanted) {
    struct driver_texture texture = {.filter = wanted->filter,
                                     .anisotropy = wanted->anisotropy,
                                     .mipmap_filter = wanted->mipmap_filter,
                                     .bias = wanted->bias,
                                     .least_level = wanted->least_level,
                                     .most_level = wanted->most_level};
    memcpy(texture.address, wanted->address, sizeof texture.address);
    memcpy(texture.border, wanted->border, sizeof texture.border);
    if (wanted->read == 0) texture.flags |= READ_AS_INTEGER; // elements unchanged, otherwise as numbers from 0 to 1
    if (wanted->normalized != 0) texture.flags |= NORMALIZED;
    if (wanted->srgb != 0) texture.flags |= SRGB;
    if (wanted->no_trilinear != 0) texture.flags |= NO_TRILINEAR;
    if (wanted->seamless != 0) texture.flags |= SEAMLESS;
    return texture;
}

static struct rt_texture texture_from_driver(const struct driver_texture *found) {
    struct rt_texture texture = {.filter = found->filter,
                                 .read = (found->flags & READ_AS_INTEGER) == 0,
                                 .srgb = (found->flags & SRGB) != 0,
                                 .normalized = (found->flags & NORMALIZED) != 0,
                                 .anisotropy = found->anisotropy,
                                 .mipmap_filter = found->mipmap_filter,
                                 .bias = found->bias,
                                 .least_level = found->least_level,
                                 .most_level = found->most_level,
                                 .no_trilinear = (found->flags & NO_TRILINEAR) != 0,
                                 .seamless = (found->flags & SEAMLESS) != 0};
    memcpy(texture.address, found->address, sizeof texture.address);
    memcpy(texture.border, found->border, sizeof texture.border);
    return texture;
}

// `bytes`: size of the settings in the program's version of CUDA.
static int make_texture(const struct rt_driver *driver, uint64_t *made, const struct rt_resource *wanted, const void *how, size_t bytes,
                        const void *view) {
    struct driver_resource resource;
    struct rt_texture settings = {0};
    struct rt_view viewed = {0};
    const int error = made == NULL || wanted == NULL || how == NULL ? RT_INVALID_VALUE : resource_for_driver(wanted, &resource);
    if (error != RT_SUCCESS) return error;
    memcpy(&settings, how, bytes);
    if (view != NULL) memcpy(&viewed, view, VIEW_BYTES);
    const struct driver_texture texture = texture_for_driver(&settings);
    return driver->tex_object_create(made, &resource, &texture, view == NULL ? NULL : &viewed);
}

static int texture_resource(const struct rt_driver *driver, struct rt_resource *answer, uint64_t object) {
    struct driver_resource found;
    const int error = answer == NULL ? RT_INVALID_VALUE : driver->tex_object_get_resource(&found, object);
    if (error == RT_SUCCESS) resource_from_driver(&found, answer);
    return error;
}

static int texture_settings(const struct rt_driver *driver, void *answer, size_t bytes, uint64_t object) {
    struct driver_texture found;
    const int error = answer == NULL ? RT_INVALID_VALUE : driver->tex_object_get_texture(&found, object);
    if (error != RT_SUCCESS) return error;
    const struct rt_texture settings = texture_from_driver(&found);
    memcpy(answer, &settings, bytes);
    return RT_SUCCESS;
}

static int texture_view(const struct rt_driver *driver, void *answer, uint64_t object) {
    struct rt_view found = {0};
    const int error = answer == NULL ? RT_INVALID_VALUE : driver->tex_object_get_view(&found, object);
    if (error == RT_SUCCESS) memcpy(answer, &found, VIEW_BYTES);
    return error;
}

int cudaCreateTextureObject(uint64_t *made, const struct rt_resource *resource, const void *settings, const void *view) {
    RT_CALL(make_texture(driver, made, resource, settings, TEXTURE_BYTES, view));
}
int cudaGetTextureObjectResourceDesc(struct rt_resource *answer, uint64_t object) { RT_CALL(texture_resource(driver, answer, object)); }
int cudaGetTextureObjectTextureDesc(void *answer, uint64_t object) { RT_CALL(texture_settings(driver, answer, TEXTURE_BYTES, object)); }
int cudaGetTextureObjectResourceViewDesc(void *answer, uint64_t object) { RT_CALL(texture_view(driver, answer, object)); }

#if RT_MAJOR == 11
int cudaCreateTextureObject_v2(uint64_t *made, const struct rt_resource *resource, const void *settings, const void *view) {
    RT_CALL(make_texture(driver, made, resource, settings, sizeof(struct rt_texture), view));
}
int cudaGetTextureObjectTextureDesc_v2(void *answer, uint64_t object) {
    RT_CALL(texture_settings(driver, answer, sizeof(struct rt_texture), object));
}
#endif

static int make_surface(const struct rt_driver *driver, uint64_t *made, const struct rt_resource *wanted) {
    struct driver_resource resource;
    const int error = made == NULL || wanted == NULL ? RT_INVALID_VALUE : resource_for_driver(wanted, &resource);
    return error != RT_SUCCESS ? error : driver->surf_object_create(made, &resource);
}

int cudaCreateSurfaceObject(uint64_t *made, const struct rt_resource *resource) { RT_CALL(make_surface(driver, made, resource)); }

static int surface_resource(const struct rt_driver *driver, struct rt_resource *answer, uint64_t object) {
    struct driver_resource found;
    const int error = answer == NULL ? RT_INVALID_VALUE : driver->surf_object_get_resource(&found, object);
    if (error == RT_SUCCESS) resource_from_driver(&found, answer);
    return error;
}

int cudaGetSurfaceObjectResourceDesc(struct rt_resource *answer, uint64_t object) { RT_CALL(surface_resource(driver, answer, object)); }
