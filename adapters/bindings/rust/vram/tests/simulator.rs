//! Tests on the simulated driver.
use vram::{sys, Allocator, Stream};

fn allocator() -> Allocator {
    Allocator::on_simulator("device=h100,devices=2", "").unwrap()
}

fn live_bytes(device: &vram::Device) -> i64 {
    device.stats().unwrap().allocated_bytes[sys::VRAM_STAT_ALL as usize].current as i64
}

#[test]
fn a_block_goes_back_when_it_is_dropped() {
    let allocator = allocator();
    let device = allocator.device(0);
    let block = device.malloc(3 << 20, Stream::DEFAULT).unwrap();
    let address = block.address();
    assert!(address % 512 == 0 && block.bytes() == 3 << 20 && block.allocated_bytes() == 3 << 20);
    assert_eq!(live_bytes(&device), 3 << 20);
    drop(block);
    assert_eq!(live_bytes(&device), 0);
    let again = device.malloc(3 << 20, Stream::DEFAULT).unwrap();
    assert_eq!(again.address(), address);
    assert_ne!(device.malloc(3 << 20, Stream(7)).unwrap().address(), address);
    again.free().unwrap();
    allocator.empty_cache().unwrap();
    let (free, total) = device.memory_info().unwrap();
    assert!(free <= total && total > 80_000_000_000);
    assert_eq!(allocator.device_count().unwrap(), 2);
}

#[test]
fn a_block_outlives_the_handles_of_its_allocator() {
    let block = allocator().device(1).malloc(100, Stream::DEFAULT).unwrap();
    assert_eq!(block.allocated_bytes(), 512);
    assert_eq!(allocator().device(0).malloc(0, Stream::DEFAULT).unwrap().address(), 0);
}

#[test]
fn what_does_not_fit_is_an_error_with_its_report() {
    let allocator = allocator();
    let device = allocator.device(0);
    let error = device.malloc(1 << 50, Stream::DEFAULT).err().unwrap();
    assert!(error.is_out_of_memory());
    assert_eq!(error.oom.as_ref().unwrap().0.requested_bytes, 1 << 50);
    assert!(error.to_string().contains("1048576.00 GiB"), "{error}");
    device.set_limit(1 << 20).unwrap();
    assert!(device.malloc(2 << 20, Stream::DEFAULT).err().unwrap().oom.unwrap().0.limit_hit);
    assert!(!allocator.device(9).malloc(1, Stream::DEFAULT).err().unwrap().is_out_of_memory());
}

#[test]
fn options_are_read_and_their_mistakes_told() {
    let wrong = Allocator::on_simulator("device=h100", "max_split_size:1").err().unwrap();
    assert_eq!(wrong.status, sys::VRAM_BAD_OPTION);
    assert!(wrong.message.contains("max_split_size_mb"), "{wrong}");
    let allocator = Allocator::on_simulator("device=h100", "expandable_segments:True").unwrap();
    let block = allocator.device(0).malloc(1 << 20, Stream::DEFAULT).unwrap();
    assert!(unsafe { sys::vram_is_expandable(allocator.as_raw(), block.address()) });
    assert!(allocator.configure("no_such_key:1").is_err());
    allocator.set_option("max_split_size_mb", Some("64")).unwrap();
    let wrong = allocator.set_option("max_split_size_mb", Some("sixty")).unwrap_err();
    assert_eq!(wrong.status, sys::VRAM_BAD_OPTION);
    assert!(allocator.set_option("no_such_key", None).is_err());
    allocator.set_option("max_split_size_mb", None).unwrap();
    assert!(Allocator::on_simulator("device=no-such-card", "").is_err());
}

#[test]
fn a_pool_keeps_its_memory_apart() {
    let allocator = allocator();
    let device = allocator.device(0);
    let pool = device.pool().unwrap();
    let own = pool.malloc(1 << 20, Stream::DEFAULT).unwrap();
    let routed = {
        let _route = pool.route_this_thread().unwrap();
        device.malloc(1 << 20, Stream::DEFAULT).unwrap()
    };
    let other = device.malloc(1 << 20, Stream::DEFAULT).unwrap();
    let stats = pool.stats().unwrap();
    assert_eq!((stats.blocks, stats.allocated_bytes), (2, 2 << 20));
    drop((own, routed));
    pool.trim().unwrap();
    assert_eq!(pool.stats().unwrap().segments, 0);
    drop((pool, other));
}

#[test]
fn blocks_go_to_other_threads() {
    let allocator = allocator();
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let device = allocator.device(thread % 2);
            let block = device.malloc(1 << 20, Stream(100)).unwrap();
            std::thread::spawn(move || {
                block.record_stream(Stream(100)).unwrap();
                drop(block);
                (0..100).map(|_| device.malloc(4096, Stream(u64::from(thread) + 1)).unwrap()).count()
            })
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap() == 100));
    assert_eq!((live_bytes(&allocator.device(0)), live_bytes(&allocator.device(1))), (0, 0));
    assert!(!vram::version().is_empty());
}
