//! Links the release build of `libttopt.so` with the archives of MLIR and LLVM: it runs where neither is installed.

#[path = "../tools/build/archives.rs"]
mod archives;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../tools/build");
    if archives::wanted() {
        archives::link("cdylib")?;
    }
    Ok(())
}
