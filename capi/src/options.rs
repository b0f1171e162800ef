//! `TtoptOptions`: a structure that grows.

use crate::report::TtoptDiagnosticCallback;
use crate::{TtoptCancellation, string};
use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use ttopt_tools::companions::Companions;
use ttopt_tools::compile::{Options, Stage};
use ttopt_tools::overrides::Override;
use ttopt_tools::session::Cancellation;

/// `TTOPT_STAGE_…` in order.
pub const STAGES: [(i32, Stage); 5] =
    [(1, Stage::Ttir), (2, Stage::Ttgir), (3, Stage::Llvmir), (4, Stage::Asm), (5, Stage::Bin)];

const EXPLAIN: u32 = 1 << 0;
const VERIFY_EACH: u32 = 1 << 1;
const ALL_TENSOR_MAPS: u32 = 1 << 2;
const LOCATIONS: u32 = 1 << 3;
const NO_FP_FUSION: u32 = 1 << 4;
const FIND_COMPANIONS: u32 = 1 << 5;
const KEEP_DENORMALS: u32 = 1 << 6;
const SCHEDULES: u32 = 1 << 7;
const NO_LINE_INFO: u32 = 1 << 8;
const ALL_FLAGS: u32 = (1 << 9) - 1;

/// As in the header, field by field.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct TtoptOverride {
    pub size: usize,
    pub name: *const c_char,
    pub bytes: *const c_char,
    pub length: usize,
    pub stage: i32,
}

/// As in the header, field by field. All zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct TtoptOptions {
    pub size: usize,
    pub target: *const c_char,
    pub num_warps: u32,
    pub num_stages: u32,
    pub num_ctas: u32,
    pub stop_after: i32,
    pub flags: u32,
    pub max_registers: u32,
    pub ptxas: *const c_char,
    pub libdevice: *const c_char,
    pub lld: *const c_char,
    pub device_libraries: *const c_char,
    pub libraries: *const *const c_char,
    pub num_libraries: usize,
    pub ptxas_options: *const *const c_char,
    pub num_ptxas_options: usize,
    pub diagnostic: Option<TtoptDiagnosticCallback>,
    pub user_data: *mut c_void,
    pub cancellation: *const TtoptCancellation,
    pub overrides: *const TtoptOverride,
    pub num_overrides: usize,
}

impl TtoptOptions {
    /// What a caller gives, as far as it and we know of it; zeros beyond.
    ///
    /// # Safety
    /// The pointer is null, or there are as many bytes as the first field says.
    pub(crate) unsafe fn read(given: *const Self) -> Self {
        let mut options = std::mem::MaybeUninit::<Self>::zeroed();
        if !given.is_null() {
            // SAFETY: by the caller; both have so many bytes. All zeros are a value of each field.
            unsafe {
                let size = (&raw const (*given).size).read().min(size_of::<Self>());
                std::ptr::copy_nonoverlapping(given.cast::<u8>(), options.as_mut_ptr().cast::<u8>(), size);
            }
        }
        // SAFETY: zeroed, then written with values of a caller's.
        unsafe { options.assume_init() }
    }

    /// `None` where a number is none that there is.
    ///
    /// # Safety
    /// Pointers are null or valid, lists are as long as they say.
    pub(crate) unsafe fn to_rust(self) -> Option<(Options, Cancellation)> {
        if self.flags & !ALL_FLAGS != 0 {
            return None;
        }
        let emit = match self.stop_after {
            0 => Stage::Asm,
            asked => STAGES.iter().find(|(number, _)| *number == asked)?.1,
        };
        let has = |flag: u32| self.flags & flag != 0;
        let or = |given: u32, default: u32| if given == 0 { default } else { given };
        let num_warps = or(self.num_warps, 4);
        let num_ctas = or(self.num_ctas, 1);
        if !num_warps.is_power_of_two() || num_warps > 64 || !num_ctas.is_power_of_two() || num_ctas > 64 {
            return None;
        }
        let mut companions = if has(FIND_COMPANIONS) { Companions::find() } else { Companions::default() };
        // SAFETY: by the caller.
        let (cancellation, target, ptxas_options) = unsafe {
            let path = |text: *const c_char| string(text).map(PathBuf::from);
            let Companions { ptxas, nvdisasm: _, libdevice, lld, device_libraries, more_libraries, .. } =
                &mut companions;
            let given = [
                (ptxas, self.ptxas),
                (libdevice, self.libdevice),
                (lld, self.lld),
                (device_libraries, self.device_libraries),
            ];
            for (place, text) in given {
                *place = path(text).or_else(|| place.take());
            }
            more_libraries.extend(list(self.libraries, self.num_libraries).into_iter().map(PathBuf::from));
            let cancellation = self.cancellation.as_ref().map(|cancellation| cancellation.0.clone());
            (
                cancellation.unwrap_or_default(),
                string(self.target),
                list(self.ptxas_options, self.num_ptxas_options),
            )
        };
        let mut options = Options::new(emit);
        options.target = target;
        options.num_warps = num_warps;
        options.num_stages = or(self.num_stages, 3);
        options.num_ctas = num_ctas;
        options.explain = has(EXPLAIN);
        options.verify_each = has(VERIFY_EACH);
        options.all_tensor_maps = has(ALL_TENSOR_MAPS);
        options.keep = true;
        options.schedules = has(SCHEDULES);
        // SAFETY: by the caller.
        options.overrides = unsafe { overrides(self.overrides, self.num_overrides) }?;
        options.locations = has(LOCATIONS);
        options.line_info = !has(NO_LINE_INFO);
        options.max_registers = (self.max_registers > 0).then_some(self.max_registers);
        options.fp_fusion = !has(NO_FP_FUSION);
        options.flush_denormals = !has(KEEP_DENORMALS);
        options.ptxas_options = ptxas_options;
        options.companions = companions;
        Some((options, cancellation))
    }
}

/// # Safety
/// The list is null, or has `length` strings.
unsafe fn list(first: *const *const c_char, length: usize) -> Vec<String> {
    if first.is_null() {
        return Vec::new();
    }
    // SAFETY: by the caller.
    (0..length).filter_map(|i| unsafe { string(*first.add(i)) }).collect()
}

/// `None` where one is not whole, or is of no stage that can be overridden.
///
/// # Safety
/// The array is null, or has `length` structures, each as long as its first field says, with valid pointers.
unsafe fn overrides(first: *const TtoptOverride, length: usize) -> Option<Vec<Override>> {
    if first.is_null() || length == 0 {
        return Some(Vec::new());
    }
    // SAFETY: by the caller. Those of a newer header are longer than ours.
    let stride = unsafe { (&raw const (*first).size).read() };
    if stride < size_of::<TtoptOverride>() {
        return None;
    }
    let one = |i: usize| {
        // SAFETY: by the caller.
        let given = unsafe { first.byte_add(i * stride).read() };
        let (_, stage) = STAGES.iter().find(|(number, _)| *number == given.stage)?;
        if given.size != stride || given.bytes.is_null() {
            return None;
        }
        // SAFETY: by the caller.
        let (name, bytes) = unsafe {
            (string(given.name), std::slice::from_raw_parts(given.bytes.cast::<u8>(), given.length).to_vec())
        };
        Override::of_stage(*stage, name.unwrap_or_else(|| "<override>".to_owned()), bytes).ok()
    };
    (0..length).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_structure_of_an_older_caller_has_defaults_behind_its_end() {
        let mut given = unsafe { TtoptOptions::read(std::ptr::null()) };
        given.size = std::mem::offset_of!(TtoptOptions, num_stages);
        given.num_warps = 8;
        given.num_stages = 9;
        // SAFETY: there are more bytes than the structure says.
        let (options, _) = unsafe { TtoptOptions::read(&raw const given).to_rust() }.expect("known numbers");
        assert_eq!((options.num_warps, options.num_stages), (8, 3));
    }

    #[test]
    fn overrides_of_a_newer_header_are_longer() {
        #[repr(C)]
        struct Longer(TtoptOverride, usize);
        let of = |stage: i32, bytes: &'static std::ffi::CStr| TtoptOverride {
            size: size_of::<Longer>(),
            name: std::ptr::null(),
            bytes: bytes.as_ptr(),
            length: bytes.count_bytes(),
            stage,
        };
        let given = [Longer(of(2, c"module"), 1), Longer(of(4, c".version"), 2)];
        // SAFETY: an array of two.
        let read = unsafe { overrides((&raw const given).cast(), 2) }.expect("both are whole");
        let read = read.iter().map(|one| (one.stage, one.name.as_str(), one.bytes.as_slice()));
        let wanted = [(Stage::Ttgir, "<override>", &b"module"[..]), (Stage::Asm, "<override>", b".version")];
        assert!(read.eq(wanted));
        for wrong in [
            TtoptOverride { stage: 5, ..given[0].0 },
            TtoptOverride { stage: 0, ..given[0].0 },
            TtoptOverride { size: size_of::<TtoptOverride>() - 1, ..given[0].0 },
            TtoptOverride { bytes: std::ptr::null(), ..given[0].0 },
        ] {
            // SAFETY: an array of one.
            assert!(unsafe { overrides(&raw const wrong, 1) }.is_none());
        }
    }

    #[test]
    fn unknown_numbers_are_refused() {
        for change in [
            |o: &mut TtoptOptions| o.flags = 1 << 20,
            |o: &mut TtoptOptions| o.stop_after = 99,
            |o: &mut TtoptOptions| o.num_warps = 3,
        ] {
            // SAFETY: null is allowed; nothing is pointed to.
            let mut given = unsafe { TtoptOptions::read(std::ptr::null()) };
            change(&mut given);
            // SAFETY: as above.
            assert!(unsafe { given.to_rust() }.is_none());
        }
    }
}
