//! A caching allocator for CUDA device memory.
//!
//! ```no_run
//! # fn main() -> vram::Result<()> {
//! let allocator = vram::Allocator::new()?; // NVIDIA's driver, the options of VRAM_ALLOC_CONF
//! let block = allocator.device(0).malloc(1 << 20, vram::Stream::DEFAULT)?;
//! println!("{:#x}", block.address());
//! # Ok(())
//! # } // the block goes back to the cache of its stream
//! ```
//!
//! Memory is used by kernels, not by Rust: a [`Block`] is an address and a size. All types may go to other threads.
mod error;
mod pool;

pub use error::{Error, Oom, Result};
pub use pool::{Pool, Route};
pub use vram_sys as sys;

use error::{check, check_with, no_error};
use std::ffi::CString;
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// A stream by its handle: a `CUstream` or `cudaStream_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(pub u64);

impl Stream {
    /// The legacy default stream.
    pub const DEFAULT: Stream = Stream(0);
    pub fn from_raw<T>(handle: *mut T) -> Stream {
        Stream(handle as usize as u64)
    }
}

/// The allocator and its simulated driver, if any. Destroyed in this order, after the last block and pool.
pub(crate) struct Shared {
    pub(crate) allocator: *mut sys::vram_allocator,
    driver: *mut sys::vram_driver,
}
// SAFETY: every function of libvram may be called from any thread.
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: there is no other reference; both functions accept null.
        unsafe {
            sys::vram_destroy(self.allocator);
            sys::vram_driver_destroy(self.driver);
        }
    }
}

fn text(value: &str) -> Result<CString> {
    CString::new(value).map_err(|_| Error { status: sys::VRAM_BAD_OPTION, message: "a NUL in an option string".into(), oom: None })
}

/// One cache for all devices. Clones are the same allocator.
#[derive(Clone)]
pub struct Allocator(pub(crate) Arc<Shared>);

impl Allocator {
    /// Creates an allocator on NVIDIA's driver, with the options of the environment.
    pub fn new() -> Result<Allocator> {
        Allocator::create(null_mut(), None)
    }
    /// Creates an allocator on NVIDIA's driver with an option string, "expandable_segments:True".
    pub fn with_options(options: &str) -> Result<Allocator> {
        Allocator::create(null_mut(), Some(options))
    }
    /// Creates an allocator on a simulated driver, "device=h100,devices=2", which needs no GPU.
    pub fn on_simulator(device: &str, options: &str) -> Result<Allocator> {
        let (device, mut driver, mut error) = (text(device)?, null_mut(), no_error());
        // SAFETY: zeros are the defaults; the text ends with a NUL.
        unsafe {
            let mut parsed: sys::vram_sim_options = std::mem::zeroed();
            check_with(sys::vram_sim_parse(device.as_ptr(), &mut parsed, &mut error), &error)?;
            check(sys::vram_sim_create(&parsed, &mut driver))?;
        }
        Allocator::create(driver, Some(options))
    }

    fn create(driver: *mut sys::vram_driver, options: Option<&str>) -> Result<Allocator> {
        let mut shared = Shared { allocator: null_mut(), driver };
        let (options, mut error) = (options.map(text).transpose()?, no_error());
        // SAFETY: zeros are the defaults; borrowed values outlive the call, and the driver outlives the allocator.
        unsafe {
            let mut info: sys::vram_create_info = std::mem::zeroed();
            info.driver = driver;
            info.conf = options.as_ref().map_or(null(), |options| options.as_ptr());
            check_with(sys::vram_create(&info, &mut shared.allocator, &mut error), &error)?;
        }
        Ok(Allocator(Arc::new(shared)))
    }

    pub fn device(&self, ordinal: u32) -> Device {
        Device { shared: self.0.clone(), ordinal }
    }
    pub fn device_count(&self) -> Result<u32> {
        let mut count = 0;
        check(unsafe { sys::vram_device_count(self.0.allocator, &mut count) })?;
        Ok(count)
    }
    /// Releases cached memory to the driver.
    pub fn empty_cache(&self) -> Result<()> {
        check(unsafe { sys::vram_empty_cache(self.0.allocator) })
    }
    /// Changes options while the allocator runs.
    pub fn configure(&self, options: &str) -> Result<()> {
        let (options, mut error) = (text(options)?, no_error());
        check_with(unsafe { sys::vram_configure(self.0.allocator, options.as_ptr(), &mut error) }, &error)
    }
    /// Changes one option and keeps all others; `None` restores its default.
    pub fn set_option(&self, key: &str, value: Option<&str>) -> Result<()> {
        let (key, value, mut error) = (text(key)?, value.map(text).transpose()?, no_error());
        let value = value.as_ref().map_or(std::ptr::null(), |value| value.as_ptr());
        check_with(unsafe { sys::vram_set_option(self.0.allocator, key.as_ptr(), value, &mut error) }, &error)
    }
    /// Returns the allocator for functions of `vram::sys`; borrowed.
    pub fn as_raw(&self) -> *mut sys::vram_allocator {
        self.0.allocator
    }
}

/// A device of an allocator, by its number.
#[derive(Clone)]
pub struct Device {
    pub(crate) shared: Arc<Shared>,
    pub(crate) ordinal: u32,
}

impl Device {
    /// Allocates memory for use on `stream`. 0 bytes give a block without an address.
    pub fn malloc(&self, bytes: u64, stream: Stream) -> Result<Block> {
        let mut address = 0;
        check(unsafe { sys::vram_malloc(self.shared.allocator, self.ordinal, bytes, stream.0, &mut address) })?;
        Ok(Block { shared: self.shared.clone(), address, bytes })
    }
    /// Creates a private pool with one reference.
    pub fn pool(&self) -> Result<Pool> {
        Pool::create(self)
    }
    /// Returns the driver's free and total bytes.
    pub fn memory_info(&self) -> Result<(u64, u64)> {
        let (mut free, mut total) = (0, 0);
        check(unsafe { sys::vram_memory_info(self.shared.allocator, self.ordinal, &mut free, &mut total) })?;
        Ok((free, total))
    }
    pub fn stats(&self) -> Result<sys::vram_stats> {
        // SAFETY: the struct has only numbers.
        let mut stats: sys::vram_stats = unsafe { std::mem::zeroed() };
        check(unsafe { sys::vram_get_stats(self.shared.allocator, self.ordinal, &mut stats) })?;
        Ok(stats)
    }
    /// Limits the bytes that may be reserved on the device.
    pub fn set_limit(&self, bytes: u64) -> Result<()> {
        check(unsafe { sys::vram_set_memory_limit(self.shared.allocator, self.ordinal, bytes) })
    }
    pub fn reset_peaks(&self) -> Result<()> {
        check(unsafe { sys::vram_reset_peak_stats(self.shared.allocator, self.ordinal) })
    }
}

/// Live device memory. Dropping it returns it to its stream's cache; work queued there before may still use it.
pub struct Block {
    pub(crate) shared: Arc<Shared>,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

impl Block {
    pub fn address(&self) -> u64 {
        self.address
    }
    /// Returns the requested size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Returns the block's size, at least `bytes()`.
    pub fn allocated_bytes(&self) -> u64 {
        unsafe { sys::vram_allocated_size(self.shared.allocator, self.address) }
    }
    /// Marks the block as also used on `stream`: after the drop it is not reused before that stream's work is done.
    pub fn record_stream(&self, stream: Stream) -> Result<()> {
        check(unsafe { sys::vram_record_stream(self.shared.allocator, self.address, stream.0) })
    }
    /// Frees the block like a drop, but returns an error if another stream's work could not be fenced; the memory then stays live.
    pub fn free(self) -> Result<()> {
        let block = std::mem::ManuallyDrop::new(self);
        let status = unsafe { sys::vram_free(block.shared.allocator, block.address) };
        // SAFETY: the value is read once, and the block is not dropped.
        drop(unsafe { std::ptr::read(&block.shared) });
        check(status)
    }
    /// Returns the address. Only `vram_free()` or the end of the allocator frees the block then.
    pub fn into_raw(self) -> u64 {
        let block = std::mem::ManuallyDrop::new(self);
        drop(unsafe { std::ptr::read(&block.shared) });
        block.address
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let _ = unsafe { sys::vram_free(self.shared.allocator, self.address) };
    }
}

/// Returns the version of the linked library.
pub fn version() -> String {
    // SAFETY: the text is static.
    unsafe { std::ffi::CStr::from_ptr(sys::vram_version()) }.to_string_lossy().into_owned()
}
