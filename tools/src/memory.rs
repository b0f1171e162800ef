//! How a process that compiles and does little else allocates memory.

/// Has the C library keep memory that was freed, for what is compiled next, in place of giving it back to the system and
/// asking for it again: LLVM's allocation of registers for AMD's GPUs alone takes and frees some megabytes three times a kernel,
/// and each of their pages has to be found and cleared. For programs of our own; in others' processes that is theirs to say.
pub fn keep_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // Of glibc's <malloc.h>. What is below the threshold does not get a mapping of its own; the largest that there is.
        const M_TRIM_THRESHOLD: std::ffi::c_int = -1;
        const M_MMAP_THRESHOLD: std::ffi::c_int = -3;
        const LARGEST: std::ffi::c_int = 32 << 20;
        unsafe extern "C" {
            fn mallopt(parameter: std::ffi::c_int, value: std::ffi::c_int) -> std::ffi::c_int;
        }
        // SAFETY: it may be called at any time, and only says where memory comes from. Where it fails nothing changes.
        unsafe {
            mallopt(M_TRIM_THRESHOLD, std::ffi::c_int::MAX);
            mallopt(M_MMAP_THRESHOLD, LARGEST);
        }
    }
}
