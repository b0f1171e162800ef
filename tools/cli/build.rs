//! Links the release builds of `ttc` and `ttsim` with the archives of MLIR and LLVM instead of their shared libraries, whose
//! hundreds of thousands of relocations take longer than it takes to compile a small kernel. The other programs, and all debug
//! builds, use the shared libraries: they load plugins, or are linked often.

#[path = "build/archives.rs"]
mod archives;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    if archives::wanted() {
        archives::link("bin=ttc")?;
        archives::link("bin=ttsim")?;
    }
    Ok(())
}
