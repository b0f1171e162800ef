//! Links the release build of `libttopt.so` with the archives of MLIR and LLVM: it runs where neither is installed.

#[path = "../tools/build/archives.rs"]
mod archives;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    archives::link_library()
}
