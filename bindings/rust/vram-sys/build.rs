//! Where libvram is: in VRAM_LIB_DIR, or where pkg-config says. VRAM_STATIC=1 links libvram.a.
use std::env;
use std::process::Command;

fn main() {
    for name in ["VRAM_LIB_DIR", "VRAM_STATIC", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if let Ok(folder) = env::var("VRAM_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
    } else if let Ok(told) = Command::new("pkg-config").args(["--variable=libdir", "vram"]).output() {
        println!("cargo:rustc-link-search=native={}", String::from_utf8_lossy(&told.stdout).trim());
    }
    if env::var("VRAM_STATIC").map_or(false, |value| value == "1") {
        println!("cargo:rustc-link-lib=static=vram");
        for library in ["pthread", "dl", "m"] {
            println!("cargo:rustc-link-lib={library}");
        }
    } else {
        println!("cargo:rustc-link-lib=dylib=vram");
    }
}
