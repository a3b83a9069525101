package vram

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, conf string) *Allocator {
	allocator, err := Open(Options{Simulator: "device=h100,devices=2", Conf: conf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(allocator.Close)
	return allocator
}

func block(t *testing.T, allocator *Allocator, device int, bytes uint64, stream Stream) *Block {
	made, err := allocator.Malloc(device, bytes, stream)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func live(t *testing.T, allocator *Allocator, device int) int64 {
	stats, err := allocator.Stats(device)
	if err != nil {
		t.Fatal(err)
	}
	return stats.AllocatedBytes.Current
}

func TestBlocksComeBack(t *testing.T) {
	allocator := open(t, "")
	first := block(t, allocator, 0, 3<<20, 0)
	address := first.Address()
	if address%512 != 0 || first.Bytes() != 3<<20 || first.AllocatedBytes() != 3<<20 || live(t, allocator, 0) != 3<<20 {
		t.Fatal(first, live(t, allocator, 0))
	}
	if err := first.Free(); err != nil || live(t, allocator, 0) != 0 || first.AllocatedBytes() != 0 {
		t.Fatal(err)
	}
	if err := first.Free(); err != nil {
		t.Fatal("a second Free", err)
	}
	if again := block(t, allocator, 0, 3<<20, 0); again.Address() != address {
		t.Fatal("the cache did not serve it")
	}
	if other := block(t, allocator, 0, 3<<20, 7); other.Address() == address {
		t.Fatal("a block of another stream")
	}
	if err := allocator.EmptyCache(); err != nil {
		t.Fatal(err)
	}
	free, total, err := allocator.MemoryInfo(1)
	if err != nil || free > total || total < 80e9 {
		t.Fatal(free, total, err)
	}
	if count, err := allocator.DeviceCount(); err != nil || count != 2 {
		t.Fatal(count, err)
	}
	if none := block(t, allocator, 1, 0, 0); none.Address() != 0 {
		t.Fatal("0 bytes")
	}
}

func TestOutOfMemoryHasItsReport(t *testing.T) {
	allocator := open(t, "")
	_, err := allocator.Malloc(0, 1<<50, 0)
	var failure *Error
	if !errors.Is(err, ErrOutOfMemory) || !errors.As(err, &failure) || failure.RequestedBytes != 1<<50 || !strings.Contains(err.Error(), "1048576.00 GiB") {
		t.Fatal(err)
	}
	if err := allocator.SetLimit(0, 1<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := allocator.Malloc(0, 2<<20, 0); !errors.As(err, &failure) || !failure.LimitHit {
		t.Fatal(err)
	}
	if _, err := allocator.Malloc(9, 1, 0); err == nil || errors.Is(err, ErrOutOfMemory) {
		t.Fatal(err)
	}
}

func TestMistakesInOptionsAreTold(t *testing.T) {
	if _, err := Open(Options{Simulator: "device=h100", Conf: "max_split_size:1"}); err == nil || !strings.Contains(err.Error(), "max_split_size_mb") {
		t.Fatal(err)
	}
	if _, err := Open(Options{Simulator: "device=no-such-card"}); err == nil {
		t.Fatal("there is no such card")
	}
	allocator := open(t, "expandable_segments:True")
	if err := allocator.Configure("no_such_key:1"); err == nil {
		t.Fatal("there is no such key")
	}
	if err := allocator.SetOption("max_split_size_mb", "64"); err != nil {
		t.Fatal(err)
	}
	if err := allocator.SetOption("max_split_size_mb", "sixty"); err == nil {
		t.Error("a wrong value was taken")
	}
	if err := allocator.SetOption("max_split_size_mb", ""); err != nil {
		t.Fatal(err)
	}
	if err := allocator.Configure("expandable_segments:False"); err != nil {
		t.Fatal(err)
	}
}

func TestPoolsAreApart(t *testing.T) {
	allocator := open(t, "")
	pool, err := allocator.NewPool(1)
	if err != nil {
		t.Fatal(err)
	}
	own, err := pool.Malloc(1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	address := own.Address()
	if err := own.Free(); err != nil {
		t.Fatal(err)
	}
	if other := block(t, allocator, 1, 1<<20, 0); other.Address() == address {
		t.Fatal("memory of the pool")
	}
	if err := pool.Trim(); err != nil {
		t.Fatal(err)
	}
	pool.Release()
}

func TestGoroutines(t *testing.T) {
	allocator := open(t, "")
	var all sync.WaitGroup
	for number := 0; number < 8; number++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			for i := 0; i < 200; i++ {
				made, err := allocator.Malloc(number%2, uint64(i+1)*1000, Stream(number+1))
				if err != nil || made.RecordStream(Stream(number+1)) != nil || made.Free() != nil {
					t.Error(err)
					return
				}
				if _, err := allocator.Malloc(number%2, 1<<50, 0); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "GiB") {
					t.Error(err)
				}
			}
		}(number)
	}
	all.Wait()
	if live(t, allocator, 0) != 0 || live(t, allocator, 1) != 0 || Version() == "" {
		t.Fatal("live blocks")
	}
}
