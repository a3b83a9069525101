//! Errors.
use std::ffi::CStr;
use std::fmt;
use vram_sys as sys;

/// Why a request for memory failed; its `Display` is the report as text.
#[derive(Clone, Copy)]
pub struct Oom(pub sys::vram_oom);

impl fmt::Display for Oom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0 as std::os::raw::c_char; 2048];
        // SAFETY: the function writes a NUL within the capacity.
        let told = unsafe {
            sys::vram_oom_text(&self.0, text.as_mut_ptr(), text.len());
            CStr::from_ptr(text.as_ptr())
        };
        out.write_str(&told.to_string_lossy())
    }
}

impl fmt::Debug for Oom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A status of libvram that is not VRAM_OK, in words.
#[derive(Clone, Debug)]
pub struct Error {
    /// `vram_sys::VRAM_OUT_OF_MEMORY` and others.
    pub status: sys::vram_status,
    pub message: String,
    /// The report, if memory ran out.
    pub oom: Option<Box<Oom>>,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn is_out_of_memory(&self) -> bool {
        self.status == sys::VRAM_OUT_OF_MEMORY || self.status == sys::VRAM_REJECTED
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.oom {
            Some(oom) => fmt::Display::fmt(oom, out),
            None => out.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

/// Turns a status into a result.
pub(crate) fn check(status: sys::vram_status) -> Result<()> {
    if status == sys::VRAM_OK {
        return Ok(());
    }
    // SAFETY: the text is static.
    let message = unsafe { CStr::from_ptr(sys::vram_status_text(status)) }.to_string_lossy().into_owned();
    let mut error = Error { status, message, oom: None };
    if error.is_out_of_memory() {
        // SAFETY: the struct has only numbers, for which zero is valid.
        let mut oom: sys::vram_oom = unsafe { std::mem::zeroed() };
        if unsafe { sys::vram_last_oom(&mut oom) } {
            error.oom = Some(Box::new(Oom(oom)));
        }
    }
    Err(error)
}

/// Turns a status into a result, with the message of a function that gives one.
pub(crate) fn check_with(status: sys::vram_status, error: &sys::vram_error) -> Result<()> {
    check(status).map_err(|mut told| {
        // SAFETY: libvram terminates the message with a NUL.
        let sentence = unsafe { CStr::from_ptr(error.message.as_ptr()) }.to_string_lossy();
        if !sentence.is_empty() {
            told.message = sentence.into_owned();
        }
        told
    })
}

pub(crate) fn no_error() -> sys::vram_error {
    // SAFETY: the struct has only numbers and characters.
    unsafe { std::mem::zeroed() }
}
