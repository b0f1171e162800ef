//! What the simulator knows of the GPUs that kernels are compiled for.
//!
//! A module names its GPU in the function attribute `target-cpu`, or in its target triple (`amdgpu9.42-amd-amdhsa`
//! is gfx942). Triton prints NVIDIA modules without either; then [`Module::cpu`](crate::ir::Module::cpu) must say it
//! wherever the answer matters. Nothing is assumed of a GPU that is not in the table.
//!
//! Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" (shared memory of a
//! thread block); LLVM, "User Guide for AMDGPU Backend" (wavefront sizes, LDS sizes); the CDNA3, CDNA4, RDNA3 and RDNA4
//! instruction set documents (formats of 8-bit floats).

use crate::Error;
use crate::banks::{self, Banks};
use crate::ir::{Function, Module, Vendor};

/// The 8-bit floats of a GPU's conversions and matrix instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fp8 {
    /// It has none.
    None,
    /// Without infinities and negative zero, the bias larger by one.
    Fnuz,
    /// Those of the Open Compute Project.
    Ocp,
}

/// A GPU.
#[derive(Debug)]
pub struct Cpu {
    /// LLVM's name, without the suffixes of NVIDIA's (`sm_90` for `sm_90a`).
    pub name: &'static str,
    /// Whose it is.
    pub vendor: Vendor,
    /// Lanes of a warp, the default first.
    pub lanes: &'static [u32],
    /// The most bytes of shared memory that a program can have.
    pub shared: u32,
    /// 8-bit floats.
    pub fp8: Fp8,
    /// How shared memory serves the lanes of an access.
    pub banks: &'static Banks,
}

const fn nvidia(name: &'static str, shared_kib: u32) -> Cpu {
    let banks = &banks::NVIDIA;
    Cpu { name, vendor: Vendor::Nvidia, lanes: &[32], shared: shared_kib << 10, fp8: Fp8::Ocp, banks }
}

const fn amd(
    name: &'static str,
    lanes: &'static [u32],
    shared_kib: u32,
    fp8: Fp8,
    banks: &'static Banks,
) -> Cpu {
    Cpu { name, vendor: Vendor::Amd, lanes, shared: shared_kib << 10, fp8, banks }
}

const RDNA: &[u32] = &[32, 64];

/// The GPUs that are known.
pub static CPUS: &[Cpu] = &[
    nvidia("sm_80", 163),
    nvidia("sm_86", 99),
    nvidia("sm_87", 163),
    nvidia("sm_89", 99),
    nvidia("sm_90", 227),
    nvidia("sm_100", 227),
    nvidia("sm_103", 227),
    nvidia("sm_120", 99),
    amd("gfx90a", &[64], 64, Fp8::None, &banks::CDNA3),
    amd("gfx942", &[64], 64, Fp8::Fnuz, &banks::CDNA3),
    amd("gfx950", &[64], 160, Fp8::Ocp, &banks::CDNA4),
    amd("gfx1100", RDNA, 64, Fp8::None, &banks::PLAIN),
    amd("gfx1101", RDNA, 64, Fp8::None, &banks::PLAIN),
    amd("gfx1102", RDNA, 64, Fp8::None, &banks::PLAIN),
    amd("gfx1103", RDNA, 64, Fp8::None, &banks::PLAIN),
    amd("gfx1150", RDNA, 64, Fp8::None, &banks::PLAIN),
    amd("gfx1151", RDNA, 64, Fp8::None, &banks::PLAIN),
    amd("gfx1200", RDNA, 64, Fp8::Ocp, &banks::PLAIN),
    amd("gfx1201", RDNA, 64, Fp8::Ocp, &banks::PLAIN),
    amd("gfx1250", &[32], 320, Fp8::Ocp, &banks::PLAIN),
];

/// The names of a vendor's known GPUs, for messages.
fn known(vendor: Option<Vendor>) -> String {
    let list = CPUS.iter().filter(|c| vendor.is_none_or(|v| c.vendor == v));
    list.map(|c| c.name).collect::<Vec<_>>().join(", ")
}

impl Cpu {
    /// By LLVM's name (`sm_90a`, `gfx942:sramecc+`) or Triton's (`cuda:90`, `hip:gfx942`).
    pub fn named(name: &str) -> Result<&'static Cpu, Error> {
        let llvm = match name.split_once(':') {
            Some(("cuda", n)) => format!("sm_{n}"),
            Some(("hip", n)) => n.split(':').next().unwrap_or(n).to_owned(),
            // Features of the chip, such as `gfx942:xnack-`.
            Some((n, _)) => n.to_owned(),
            None => name.to_owned(),
        };
        let plain = if llvm.starts_with("sm_") { llvm.trim_end_matches(['a', 'f']).to_owned() } else { llvm };
        CPUS.iter().find(|c| c.name == plain).ok_or_else(|| {
            Error::Launch(format!("the simulator does not know the GPU '{name}'; it knows {}", known(None)))
        })
    }
}

/// The name that a target triple has in it: `amdgpu9.42-amd-amdhsa` is for gfx942.
pub(crate) fn of_triple(triple: &str) -> Option<String> {
    let version = triple.split('-').next()?.strip_prefix("amdgpu")?;
    let digits: String = version.chars().filter(|c| *c != '.').collect();
    (!digits.is_empty()).then(|| format!("gfx{digits}"))
}

/// The GPU that a kernel is for, as far as the module says it.
#[derive(Clone, Copy, Debug)]
pub struct Gpu {
    /// Vendor.
    pub vendor: Vendor,
    /// Lanes of a warp.
    pub lanes: u32,
    /// The GPU; only NVIDIA's may be missing, which differ in little.
    pub cpu: Option<&'static Cpu>,
}

impl Gpu {
    /// The GPU of a kernel: what the user says of the module and what the module says must agree.
    pub(crate) fn of(module: &Module, f: &Function) -> Result<Gpu, Error> {
        let said = module.cpu.as_deref().map(Cpu::named).transpose()?;
        let own = f.cpu.as_deref().or(module.triple_cpu.as_deref()).map(Cpu::named).transpose()?;
        if let (Some(said), Some(own)) = (said, own)
            && said.name != own.name
        {
            return Err(Error::Launch(format!(
                "@{} is compiled for {}, not for {}",
                f.name, own.name, said.name
            )));
        }
        let cpu = said.or(own);
        let vendor = module.vendor;
        if let Some(c) = cpu.filter(|c| c.vendor != vendor) {
            return Err(Error::Launch(format!("@{} is code for {vendor:?}, {} is not", f.name, c.name)));
        }
        let lanes = match (vendor, cpu) {
            (Vendor::Nvidia, _) => 32,
            (Vendor::Amd, Some(c)) => wave(f, c)?,
            (Vendor::Amd, None) => {
                return Err(Error::Launch(format!(
                    "@{} does not say which GPU it is for (a target-cpu, a triple such as amdgpu9.42-amd-amdhsa, or \
                     --target hip:gfx942); known are {}",
                    f.name,
                    known(Some(Vendor::Amd))
                )));
            }
        };
        Ok(Gpu { vendor, lanes, cpu })
    }

    /// What serves accesses to shared memory.
    pub fn banks(&self) -> &'static Banks {
        self.cpu.map_or(&banks::NVIDIA, |c| c.banks)
    }

    /// The GPU, where something depends on it.
    pub(crate) fn demand(&self, why: &str) -> Result<&'static Cpu, Error> {
        self.cpu.ok_or_else(|| {
            Error::Launch(format!(
                "the module does not say which GPU it is for, and {why}; give --target, one of {}",
                known(Some(self.vendor))
            ))
        })
    }

    /// The most shared memory that a program can have on this GPU, or on any of its vendor.
    pub(crate) fn most_shared(&self) -> u32 {
        let any = CPUS.iter().filter(|c| c.vendor == self.vendor).map(|c| c.shared).max().unwrap_or(0);
        self.cpu.map_or(any, |c| c.shared)
    }
}

/// Lanes of a wavefront: the GPU's default, unless the kernel's features say otherwise.
fn wave(f: &Function, cpu: &Cpu) -> Result<u32, Error> {
    let asked = [32, 64].into_iter().find(|n| f.features.contains(&format!("+wavefrontsize{n}")));
    match asked {
        Some(n) if !cpu.lanes.contains(&n) => {
            Err(Error::Launch(format!("@{} has waves of {n} lanes, which {} has not", f.name, cpu.name)))
        }
        Some(n) => Ok(n),
        None => Ok(cpu.lanes[0]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_origin() {
        for (name, want) in [
            ("sm_90a", "sm_90"),
            ("cuda:100", "sm_100"),
            ("sm_120f", "sm_120"),
            ("hip:gfx942", "gfx942"),
            ("gfx90a:sramecc+:xnack-", "gfx90a"),
        ] {
            assert_eq!(Cpu::named(name).unwrap().name, want);
        }
        let error = Cpu::named("gfx803").unwrap_err().to_string();
        assert!(error.contains("'gfx803'; it knows sm_80") && error.contains("gfx950"), "{error}");
        assert_eq!(of_triple("amdgpu9.42-amd-amdhsa").as_deref(), Some("gfx942"));
        assert_eq!(of_triple("amdgpu11.00-amd-amdhsa").as_deref(), Some("gfx1100"));
        assert_eq!(of_triple("amdgcn-amd-amdhsa"), None);
    }
}
