//! Private memory pools.
use crate::error::check;
use crate::{sys, Block, Device, Result, Shared, Stream};
use std::marker::PhantomData;
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// A private pool. Dropping it releases its free memory to the driver; its blocks stay valid until they are dropped.
pub struct Pool {
    shared: Arc<Shared>,
    pool: *mut sys::vram_pool,
}
// SAFETY: every function of libvram may be called from any thread.
unsafe impl Send for Pool {}
unsafe impl Sync for Pool {}

fn of_this_thread() -> sys::vram_route {
    sys::vram_route { kind: sys::VRAM_ROUTE_THREAD, stream: 0, accepts: None, user: null_mut() }
}

impl Pool {
    pub(crate) fn create(device: &Device) -> Result<Pool> {
        let mut pool = null_mut();
        check(unsafe { sys::vram_pool_create(device.shared.allocator, device.ordinal, null(), &mut pool) })?;
        Ok(Pool { shared: device.shared.clone(), pool })
    }
    /// Allocates from this pool, regardless of routes.
    pub fn malloc(&self, bytes: u64, stream: Stream) -> Result<Block> {
        let mut address = 0;
        check(unsafe { sys::vram_pool_malloc(self.pool, bytes, stream.0, &mut address) })?;
        Ok(Block { shared: self.shared.clone(), address, bytes })
    }
    /// Serves this thread's requests from the pool until the route is dropped.
    pub fn route_this_thread(&self) -> Result<Route<'_>> {
        check(unsafe { sys::vram_pool_begin(self.pool, &of_this_thread()) })?;
        Ok(Route { pool: self, _not_send: PhantomData })
    }
    /// Releases wholly free segments to the driver.
    pub fn trim(&self) -> Result<()> {
        check(unsafe { sys::vram_pool_empty_cache(self.pool) })
    }
    pub fn stats(&self) -> Result<sys::vram_pool_stats> {
        // SAFETY: the struct has only numbers.
        let mut stats: sys::vram_pool_stats = unsafe { std::mem::zeroed() };
        check(unsafe { sys::vram_get_pool_stats(self.pool, &mut stats) })?;
        Ok(stats)
    }
    /// Returns the pool for functions of `vram::sys`; borrowed.
    pub fn as_raw(&self) -> *mut sys::vram_pool {
        self.pool
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        unsafe { sys::vram_pool_release(self.pool) }
    }
}

/// An open route. It cannot leave its thread.
pub struct Route<'a> {
    pool: &'a Pool,
    _not_send: PhantomData<*const ()>,
}

impl Drop for Route<'_> {
    fn drop(&mut self) {
        let _ = unsafe { sys::vram_pool_end(self.pool.pool, &of_this_thread()) };
    }
}
