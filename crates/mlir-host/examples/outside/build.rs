//! Lets what is built here find libMLIR when it runs.

fn main() {
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", std::env::var("DEP_MLIR_HOST_LIBDIR").unwrap());
}
