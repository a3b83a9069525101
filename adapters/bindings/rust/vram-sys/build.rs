//! Finds libvram: in VRAM_LIB_DIR, else where pkg-config says, else on the linker's path. VRAM_STATIC=1 links the archives.
use std::env;
use std::path::Path;
use std::process::Command;

/// Returns the folder that pkg-config names, or the reason why it names none.
fn from_pkg_config() -> Result<String, String> {
    let asked = Command::new("pkg-config").args(["--variable=libdir", "vram"]).output();
    let told = asked.map_err(|error| format!("pkg-config cannot be started ({error})"))?;
    let folder = String::from_utf8_lossy(&told.stdout).trim().to_string();
    if told.status.success() && !folder.is_empty() {
        Ok(folder)
    } else {
        Err("pkg-config knows no `vram`".to_string())
    }
}

fn main() {
    for name in ["VRAM_LIB_DIR", "VRAM_STATIC", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let fixed = env::var("VRAM_STATIC").map_or(false, |value| value == "1");
    let names: &[&str] = if fixed { &["libvram.a"] } else { &["libvram.so", "libvram.dylib"] };
    if let Ok(folder) = env::var("VRAM_LIB_DIR") {
        if !names.iter().any(|name| Path::new(&folder).join(name).exists()) {
            panic!("VRAM_LIB_DIR is {folder}, where there is no {}", names[0]);
        }
        println!("cargo:rustc-link-search=native={folder}");
    } else {
        match from_pkg_config() {
            Ok(folder) => println!("cargo:rustc-link-search=native={folder}"),
            Err(why) => println!("cargo:warning=libvram is looked for where the linker does: VRAM_LIB_DIR is not set, and {why}"),
        }
    }
    if fixed {
        for library in ["vram-sim", "vram"] {
            println!("cargo:rustc-link-lib=static={library}");
        }
        for library in ["pthread", "dl", "m"] {
            println!("cargo:rustc-link-lib={library}");
        }
    } else {
        for library in ["vram-sim", "vram"] {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
    }
}
