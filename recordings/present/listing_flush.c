// What has been listed goes out in pieces.
#include "present/listing.h"

enum vram_status vr_listing_flush(struct vr_listing *listing, size_t least_bytes) {
    if (listing->text.failed) return VRAM_NO_HOST_MEMORY;
    if (listing->text.length < least_bytes || listing->text.length == 0) return VRAM_OK;
    if (!listing->write(listing->user, listing->text.bytes, listing->text.length)) return VRAM_IO;
    listing->text.length = 0;
    return VRAM_OK;
}
