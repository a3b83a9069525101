package vram

/*
#include <vram/vram.h>

// Gets the report in the same C call as the request: reports are per thread, and a goroutine may change its thread between two calls.
static enum vram_status malloc_or_report(struct vram_allocator *allocator, struct vram_pool *pool, uint32_t device, uint64_t bytes,
                                         uint64_t stream, uint64_t *address, struct vram_oom *oom) {
    const enum vram_status status = pool != NULL ? vram_pool_malloc(pool, bytes, stream, address)
                                                 : vram_malloc(allocator, device, bytes, stream, address);
    if (status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED) (void)vram_last_oom(oom);
    return status;
}
*/
import "C"

import "unsafe"

func check(status C.enum_vram_status) error {
	if status == C.VRAM_OK {
		return nil
	}
	return &Error{Status: int(status), Message: C.GoString(C.vram_status_text(status))}
}

// told is like check, but uses the message of the failed function if it has one.
func told(status C.enum_vram_status, failure *C.struct_vram_error) error {
	if status == C.VRAM_OK {
		return nil
	}
	if failure.message[0] == 0 {
		return check(status)
	}
	return &Error{Status: int(status), Message: C.GoString(&failure.message[0])}
}

func (a *Allocator) malloc(pool *C.struct_vram_pool, device int, bytes uint64, stream Stream) (*Block, error) {
	block := &Block{allocator: a, bytes: bytes}
	var oom C.struct_vram_oom
	status := C.malloc_or_report(a.c, pool, C.uint32_t(device), C.uint64_t(bytes), C.uint64_t(stream), &block.address, &oom)
	if status == C.VRAM_OK {
		return block, nil
	}
	err := check(status).(*Error)
	if err.Is(ErrOutOfMemory) {
		text := make([]byte, C.vram_oom_text(&oom, nil, 0)+1)
		C.vram_oom_text(&oom, (*C.char)(unsafe.Pointer(&text[0])), C.size_t(len(text)))
		err.Message, err.RequestedBytes, err.LimitHit = string(text[:len(text)-1]), uint64(oom.requested_bytes), bool(oom.limit_hit)
	}
	return nil, err
}
