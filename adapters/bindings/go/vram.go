// Package vram is a caching allocator for CUDA device memory: PyTorch's, for any program.
//
// Kernels use the memory, Go does not: a Block is an address and a size. All functions may be called from any goroutine. Release blocks,
// pools and allocators with Free, Release and Close; the garbage collector does not release them.
package vram

/*
#cgo LDFLAGS: -lvram-sim -lvram
#include <stdlib.h>
#include <vram/sim.h>
#include <vram/vram.h>
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Stream is the handle of a stream, a CUstream or cudaStream_t, as a number; 0 is the legacy default stream.
type Stream uint64

// Options configure a new allocator. The zero value is NVIDIA's driver with the options of the environment.
type Options struct {
	// Conf is an option string, "expandable_segments:True". If empty, VRAM_ALLOC_CONF and similar variables are used.
	Conf string
	// Simulator describes a simulated driver, "device=h100,devices=2", which needs no GPU. If empty, NVIDIA's driver is used.
	Simulator string
}

// Allocator is one cache for all devices.
type Allocator struct {
	c      *C.struct_vram_allocator
	driver *C.struct_vram_driver
}

// Open creates an allocator. The caller releases it with Close.
func Open(options Options) (*Allocator, error) {
	var failure C.struct_vram_error
	made := &Allocator{}
	if options.Simulator != "" {
		text := C.CString(options.Simulator)
		defer C.free(unsafe.Pointer(text))
		var parsed C.struct_vram_sim_options
		if status := C.vram_sim_parse(text, &parsed, &failure); status != C.VRAM_OK {
			return nil, told(status, &failure)
		}
		if status := C.vram_sim_create(&parsed, &made.driver); status != C.VRAM_OK {
			return nil, check(status)
		}
	}
	// Allocate in C's memory, because the struct contains pointers.
	info := (*C.struct_vram_create_info)(C.calloc(1, C.sizeof_struct_vram_create_info))
	defer C.free(unsafe.Pointer(info))
	info.driver = made.driver
	if options.Conf != "" {
		info.conf = C.CString(options.Conf)
		defer C.free(unsafe.Pointer(info.conf))
	}
	if status := C.vram_create(info, &made.c, &failure); status != C.VRAM_OK {
		C.vram_driver_destroy(made.driver)
		return nil, told(status, &failure)
	}
	return made, nil
}

// Close releases all memory to the driver, including blocks that were never freed. Do not use the allocator or anything made by it
// afterwards.
func (a *Allocator) Close() {
	C.vram_destroy(a.c)
	C.vram_driver_destroy(a.driver)
	a.c, a.driver = nil, nil
}

// Pointer returns the struct vram_allocator, for C functions.
func (a *Allocator) Pointer() unsafe.Pointer { return unsafe.Pointer(a.c) }

// Block is live device memory.
type Block struct {
	allocator *Allocator
	address   C.uint64_t
	bytes     uint64
}

// Malloc allocates device memory for use on a stream. 0 bytes give a block without an address.
func (a *Allocator) Malloc(device int, bytes uint64, stream Stream) (*Block, error) {
	return a.malloc(nil, device, bytes, stream)
}

// Address returns the block's address on its device.
func (b *Block) Address() uintptr { return uintptr(b.address) }

// Bytes returns the requested size.
func (b *Block) Bytes() uint64 { return b.bytes }

// AllocatedBytes returns the block's size, at least Bytes; 0 after Free.
func (b *Block) AllocatedBytes() uint64 {
	return uint64(C.vram_allocated_size(b.allocator.c, b.address))
}

// RecordStream marks the block as also used on a stream: after Free it is not reused before that stream's work is done.
func (b *Block) RecordStream(stream Stream) error {
	return check(C.vram_record_stream(b.allocator.c, b.address, C.uint64_t(stream)))
}

// Free returns the block to the cache of its stream; work queued there may still use it. A second Free does nothing.
func (b *Block) Free() error {
	if err := check(C.vram_free(b.allocator.c, b.address)); err != nil {
		return err
	}
	b.address = 0
	return nil
}

// EmptyCache releases cached memory to the driver.
func (a *Allocator) EmptyCache() error { return check(C.vram_empty_cache(a.c)) }

// Configure changes options while the allocator runs.
func (a *Allocator) Configure(conf string) error {
	var failure C.struct_vram_error
	text := C.CString(conf)
	defer C.free(unsafe.Pointer(text))
	return told(C.vram_configure(a.c, text, &failure), &failure)
}

// SetOption changes one option and keeps all others; value "" is its default.
func (a *Allocator) SetOption(key, value string) error {
	var failure C.struct_vram_error
	name := C.CString(key)
	defer C.free(unsafe.Pointer(name))
	var text *C.char
	if value != "" {
		text = C.CString(value)
		defer C.free(unsafe.Pointer(text))
	}
	return told(C.vram_set_option(a.c, name, text, &failure), &failure)
}

// SetLimit limits the bytes that the allocator may reserve on a device.
func (a *Allocator) SetLimit(device int, bytes uint64) error {
	return check(C.vram_set_memory_limit(a.c, C.uint32_t(device), C.uint64_t(bytes)))
}

// MemoryInfo returns the driver's free and total bytes of a device.
func (a *Allocator) MemoryInfo(device int) (free, total uint64, err error) {
	var f, t C.uint64_t
	err = check(C.vram_memory_info(a.c, C.uint32_t(device), &f, &t))
	return uint64(f), uint64(t), err
}

// DeviceCount returns the number of the driver's devices.
func (a *Allocator) DeviceCount() (int, error) {
	var count C.uint32_t
	err := check(C.vram_device_count(a.c, &count))
	return int(count), err
}

// Stat is a counter: current, peak and cumulative values.
type Stat struct{ Current, Peak, Allocated, Freed int64 }

// Stats has a device's most used counters, under PyTorch's names.
type Stats struct{ Allocation, Segment, AllocatedBytes, ReservedBytes, ActiveBytes, RequestedBytes Stat }

// Stats returns a consistent set of a device's counters.
func (a *Allocator) Stats(device int) (Stats, error) {
	var stats C.struct_vram_stats
	err := check(C.vram_get_stats(a.c, C.uint32_t(device), &stats))
	of := func(stat [C.VRAM_STAT_POOLS]C.struct_vram_stat) Stat {
		all := stat[C.VRAM_STAT_ALL]
		return Stat{int64(all.current), int64(all.peak), int64(all.allocated), int64(all.freed)}
	}
	return Stats{of(stats.allocation), of(stats.segment), of(stats.allocated_bytes), of(stats.reserved_bytes), of(stats.active_bytes),
		of(stats.requested_bytes)}, err
}

// Pool is a private memory pool.
type Pool struct {
	allocator *Allocator
	c         *C.struct_vram_pool
}

// NewPool creates a private pool on a device. The caller releases it with Release.
func (a *Allocator) NewPool(device int) (*Pool, error) {
	pool := &Pool{allocator: a}
	if err := check(C.vram_pool_create(a.c, C.uint32_t(device), nil, &pool.c)); err != nil {
		return nil, err
	}
	return pool, nil
}

// Malloc allocates from the pool.
func (p *Pool) Malloc(bytes uint64, stream Stream) (*Block, error) {
	return p.allocator.malloc(p.c, 0, bytes, stream)
}

// Trim releases the pool's wholly free segments to the driver.
func (p *Pool) Trim() error { return check(C.vram_pool_empty_cache(p.c)) }

// Release ends the pool; its live blocks stay valid until they are freed.
func (p *Pool) Release() {
	C.vram_pool_release(p.c)
	p.c = nil
}

// ErrOutOfMemory matches, with errors.Is, the error of a request that did not fit.
var ErrOutOfMemory = errors.New("out of memory")

// Error is a failed status with its message.
type Error struct {
	Status  int
	Message string
	// RequestedBytes and LimitHit describe a request that did not fit; its Message is the report.
	RequestedBytes uint64
	LimitHit       bool
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is(err, ErrOutOfMemory) work.
func (e *Error) Is(target error) bool {
	return target == ErrOutOfMemory && (e.Status == C.VRAM_OUT_OF_MEMORY || e.Status == C.VRAM_REJECTED)
}

// Version returns the version of the linked library.
func Version() string { return C.GoString(C.vram_version()) }
