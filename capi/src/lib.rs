//! `libttopt`: the compiler behind a C ABI. `include/ttopt.h` is its documentation; a test holds the two together.
//!
//! Handles are boxes of Rust's, passed as pointers. No panic crosses the ABI: what a panic says is a diagnostic.

// Whoever finds what cannot be says so by an error with a place (CONTRIBUTING): nothing here ends a compilation by a panic.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented
    )
)]

mod options;
mod report;

use linear_layout::show::{self, timeline};
pub use options::{TtoptOptions, TtoptOverride};
pub use report::{TtoptDiagnostic, TtoptDiagnosticCallback};
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use ttopt_tools::compile::Compiled;
use ttopt_tools::session::{Cancellation, Failure, Session};

/// As in the header.
pub const ABI_VERSION: u32 = 1;

/// Status: all is well.
pub const OK: i32 = 0;
/// Status: the input or the options are not accepted.
pub const FAILED: i32 = 1;
/// Status: somebody stopped it.
pub const CANCELLED: i32 = 2;
/// Status: a bug of ours.
pub const INTERNAL: i32 = 3;
/// Status: a null pointer or an unknown number.
pub const INVALID_ARGUMENT: i32 = 4;

/// Compiles, from any thread.
pub struct TtoptSession(Session);

/// Stops compilations.
pub struct TtoptCancellation(pub(crate) Cancellation);

/// What was compiled.
pub struct TtoptResult {
    /// By stage, as [`options::STAGES`] counts; each ends with a zero.
    artifacts: [Option<Vec<u8>>; 5],
    metadata: Option<CString>,
    name: Option<CString>,
    numbers: [i64; 13],
    /// As JSON and as a picture.
    schedules: Option<[CString; 2]>,
}

impl TtoptResult {
    fn new(compiled: Compiled) -> Self {
        let with_zero = |bytes: Option<Vec<u8>>| {
            bytes.map(|mut bytes| {
                bytes.push(0);
                bytes
            })
        };
        let made = compiled.artifacts;
        let artifacts = [made.ttir, made.ttgir, made.llvmir, made.asm, made.bin].map(with_zero);
        let number = |n: u64| i64::try_from(n).unwrap_or(-1);
        let kernel = compiled.metadata.as_ref();
        let of_kernel = kernel.map_or([-1; 6], |kernel| {
            [
                kernel.num_warps.into(),
                kernel.threads.into(),
                number(kernel.shared),
                number(kernel.global_scratch),
                number(kernel.global_scratch_align),
                kernel.cluster.into(),
            ]
        });
        let of_binary = compiled.resources.map_or([-1; 7], |used| {
            let needs = [used.registers, used.spill_stores, used.spill_loads, used.stack];
            let [a, b, c, d] = needs.map(i64::from);
            let [e, f, g] = [used.ctas, used.warps, used.most_warps].map(i64::from);
            [a, b, c, d, e, f, g]
        });
        let mut numbers = [-1; 13];
        numbers[..6].copy_from_slice(&of_kernel);
        numbers[6..].copy_from_slice(&of_binary);
        let text = |text: String| CString::new(text).ok();
        let schedules = compiled.schedules.as_deref();
        Self {
            schedules: schedules
                .and_then(|loops| Some([text(timeline::to_json(loops))?, text(timeline::svg(loops))?])),
            artifacts,
            metadata: kernel.and_then(|kernel| text(kernel.to_json().to_string())),
            name: kernel.and_then(|kernel| text(kernel.name.clone())),
            numbers,
        }
    }
}

/// `otherwise` where `f` panics.
fn guard<T>(otherwise: T, f: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or(otherwise)
}

/// A string of a caller's.
///
/// # Safety
/// It ends with a zero, or is null.
pub(crate) unsafe fn string(text: *const c_char) -> Option<String> {
    // SAFETY: by the caller.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Frees a box, if there is one.
///
/// # Safety
/// It was made by `Box::into_raw` and is nobody's any more.
unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: by the caller.
        guard((), || drop(unsafe { Box::from_raw(pointer) }));
    }
}

/// `ttoptAbiVersion`
// SAFETY of this and all below: the names are prefixed and nothing else defines them.
#[unsafe(no_mangle)]
pub extern "C" fn ttoptAbiVersion() -> u32 {
    ABI_VERSION
}

/// `ttoptVersion`
#[unsafe(no_mangle)]
pub extern "C" fn ttoptVersion() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// `ttoptSessionCreate`
#[unsafe(no_mangle)]
pub extern "C" fn ttoptSessionCreate() -> *mut TtoptSession {
    guard(std::ptr::null_mut(), || Box::into_raw(Box::new(TtoptSession(Session::new()))))
}

/// `ttoptSessionDestroy`
///
/// # Safety
/// The session is one of `ttoptSessionCreate`, or null, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptSessionDestroy(session: *mut TtoptSession) {
    // SAFETY: by the caller.
    unsafe { free(session) }
}

/// `ttoptCancellationCreate`
#[unsafe(no_mangle)]
pub extern "C" fn ttoptCancellationCreate() -> *mut TtoptCancellation {
    guard(std::ptr::null_mut(), || Box::into_raw(Box::new(TtoptCancellation(Cancellation::default()))))
}

/// `ttoptCancel`
///
/// # Safety
/// The cancellation is valid, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptCancel(cancellation: *const TtoptCancellation) {
    // SAFETY: by the caller.
    if let Some(cancellation) = unsafe { cancellation.as_ref() } {
        cancellation.0.cancel();
    }
}

/// `ttoptCancellationDestroy`
///
/// # Safety
/// The cancellation is one of `ttoptCancellationCreate`, or null, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptCancellationDestroy(cancellation: *mut TtoptCancellation) {
    // SAFETY: by the caller.
    unsafe { free(cancellation) }
}

/// `ttoptCompile`
///
/// # Safety
/// As the header says: pointers are valid or, where it allows that, null; `input` has `length` bytes; `options` has as
/// many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptCompile(
    session: *mut TtoptSession,
    input: *const c_char,
    length: usize,
    name: *const c_char,
    options: *const TtoptOptions,
    result: *mut *mut TtoptResult,
) -> i32 {
    // SAFETY: by the caller.
    let Some(result) = (unsafe { result.as_mut() }) else { return INVALID_ARGUMENT };
    *result = std::ptr::null_mut();
    // SAFETY: by the caller.
    let Some(session) = (unsafe { session.as_ref() }) else { return INVALID_ARGUMENT };
    if input.is_null() {
        return INVALID_ARGUMENT;
    }
    guard(INTERNAL, || {
        // SAFETY: by the caller.
        let (input, name, asked) = unsafe {
            (
                std::slice::from_raw_parts(input.cast::<u8>(), length),
                string(name).unwrap_or_else(|| "<input>".to_owned()),
                TtoptOptions::read(options),
            )
        };
        // SAFETY: by the caller.
        let Some((options, cancellation)) = (unsafe { asked.to_rust() }) else { return INVALID_ARGUMENT };
        let outcome = session.0.compile(input, &name, &options, &cancellation);
        // SAFETY: by the caller.
        unsafe { report::tell(&outcome.diagnostics, asked.diagnostic, asked.user_data) };
        match outcome.result {
            Ok(compiled) => {
                *result = Box::into_raw(Box::new(TtoptResult::new(compiled)));
                OK
            }
            Err(Failure::Cancelled) => CANCELLED,
            Err(Failure::Diagnosed) => FAILED,
            Err(_) => INTERNAL,
        }
    })
}

/// `ttoptResultArtifact`
///
/// # Safety
/// The result is valid or null, and so is the size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptResultArtifact(
    result: *const TtoptResult,
    stage: i32,
    size: *mut usize,
) -> *const c_char {
    let place = options::STAGES.iter().position(|(number, _)| *number == stage);
    // SAFETY: by the caller.
    let bytes =
        unsafe { result.as_ref() }.zip(place).and_then(|(result, at)| result.artifacts[at].as_deref());
    // SAFETY: by the caller.
    if let Some(size) = unsafe { size.as_mut() } {
        *size = bytes.map_or(0, |bytes| bytes.len() - 1);
    }
    bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast())
}

/// `ttoptResultMetadataJson`
///
/// # Safety
/// The result is valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptResultMetadataJson(result: *const TtoptResult) -> *const c_char {
    // SAFETY: by the caller.
    let text = unsafe { result.as_ref() }.and_then(|result| result.metadata.as_ref());
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}

/// `ttoptResultKernelName`
///
/// # Safety
/// The result is valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptResultKernelName(result: *const TtoptResult) -> *const c_char {
    // SAFETY: by the caller.
    let text = unsafe { result.as_ref() }.and_then(|result| result.name.as_ref());
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}

/// `ttoptResultSchedules`
///
/// # Safety
/// The result is valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptResultSchedules(result: *const TtoptResult, format: i32) -> *const c_char {
    // SAFETY: by the caller.
    let schedules = unsafe { result.as_ref() }.and_then(|result| result.schedules.as_ref());
    let text = schedules.and_then(|texts| texts.get(usize::try_from(format).ok()?));
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}

/// `ttoptResultNumber`
///
/// # Safety
/// The result is valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptResultNumber(result: *const TtoptResult, which: i32) -> i64 {
    // SAFETY: by the caller.
    let numbers = unsafe { result.as_ref() }.map(|result| &result.numbers);
    usize::try_from(which).ok().and_then(|at| numbers?.get(at).copied()).unwrap_or(-1)
}

/// `ttoptResultDestroy`
///
/// # Safety
/// The result is one of `ttoptCompile`, or null, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptResultDestroy(result: *mut TtoptResult) {
    // SAFETY: by the caller.
    unsafe { free(result) }
}

/// `ttoptLayoutShow`
///
/// # Safety
/// Strings end with a zero, `shape` has `rank` numbers, `text` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptLayoutShow(
    layout: *const c_char,
    to: *const c_char,
    shape: *const u64,
    rank: usize,
    dtype: *const c_char,
    target: *const c_char,
    format: i32,
    text: *mut *mut c_char,
) -> i32 {
    let formats = [
        show::Format::Table,
        show::Format::Matrix,
        show::Format::Bases,
        show::Format::Json,
        show::Format::Svg,
    ];
    let format = usize::try_from(format).ok().and_then(|at| formats.get(at).copied());
    // SAFETY: by the caller.
    let (Some(text), Some(format), false) = (unsafe { text.as_mut() }, format, layout.is_null()) else {
        return INVALID_ARGUMENT;
    };
    *text = std::ptr::null_mut();
    if shape.is_null() && rank > 0 {
        return INVALID_ARGUMENT;
    }
    guard(INTERNAL, || {
        // SAFETY: by the caller.
        let request = unsafe {
            show::Request {
                layout: string(layout).unwrap_or_default(),
                shape: if rank == 0 { Vec::new() } else { std::slice::from_raw_parts(shape, rank).to_vec() },
                dtype: string(dtype).unwrap_or_else(|| "f32".to_owned()),
                to: string(to),
                target: string(target).unwrap_or_else(|| "cuda:90".to_owned()),
                num_warps: None,
            }
        };
        let (status, answer) = match show::text(&request, format) {
            Ok(answer) => (OK, answer),
            Err(why) => (FAILED, why),
        };
        match CString::new(answer) {
            Ok(answer) => {
                *text = answer.into_raw();
                status
            }
            Err(_) => INTERNAL,
        }
    })
}

/// `ttoptTextFree`
///
/// # Safety
/// The text is one of `ttoptLayoutShow`, or null, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptTextFree(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: by the caller.
        drop(unsafe { CString::from_raw(text) });
    }
}
