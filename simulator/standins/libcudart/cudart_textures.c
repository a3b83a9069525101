// Texture and surface objects: the runtime tells formats by channels and names each setting, the driver by formats and flags.
#include <string.h>

#include "runtime.h"

enum { ARRAY, MIPMAPS, LINEAR, PITCH2D }; // kinds of resources, numbered alike

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

// cudaResourceViewDesc and the driver's are alike.
struct rt_view {
    int format;
    size_t width, height, depth;
    unsigned levels[2], layers[2];
    unsigned reserved[16]; // since CUDA 13
};

// What of these a program's CUDA knows: before 13 they end where the last member that is used does.
#if RT_MAJOR >= 13
enum { RESOURCE_BYTES = sizeof(struct rt_resource), VIEW_BYTES = sizeof(struct rt_view) };
#else
enum { RESOURCE_BYTES = 64, VIEW_BYTES = offsetof(struct rt_view, reserved) };
#endif
// Version 1 of a texture's settings, which CUDA 11 has, ends before `seamless`.
#if RT_MAJOR >= 12
enum { TEXTURE_BYTES = sizeof(struct rt_texture) };
#else
enum { TEXTURE_BYTES = offsetof(struct rt_texture, seamless) };
#endif

static void resource_from_driver(const struct driver_resource *found, struct rt_resource *answer) {
    struct rt_resource resource = {.kind = found->kind};
    struct rt_array_descriptor format = {.format = found->linear.format, .channels = found->linear.channels}; // at one place in both
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
    if (wanted->read == 0) texture.flags |= READ_AS_INTEGER; // elements as they are; else as numbers from 0 to 1
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

// bytes: of the settings, as the program's version of them has.
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
