//! Reading the parameters of an encoding from a dictionary attribute.

use mlir_host::ir::Attr;

/// The entries of a dictionary, taken one by one.
pub(super) struct Dict<'c> {
    entries: Vec<Option<(&'c str, Attr<'c>)>>,
}

impl<'c> Dict<'c> {
    pub(super) fn new(entries: Vec<(&'c str, Attr<'c>)>) -> Self {
        Self { entries: entries.into_iter().map(Some).collect() }
    }

    /// Takes an entry that may be missing.
    pub(super) fn take(&mut self, key: &str) -> Option<Attr<'c>> {
        let slot = self.entries.iter_mut().find(|entry| entry.is_some_and(|(name, _)| name == key))?;
        slot.take().map(|(_, value)| value)
    }

    /// Whether an entry is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().flatten().any(|(name, _)| *name == key)
    }

    /// Takes an entry.
    pub(super) fn required(&mut self, key: &str) -> Result<Attr<'c>, String> {
        self.take(key).ok_or_else(|| format!("parameter `{key}` is missing"))
    }

    /// Reports the first entry that nobody took.
    pub(super) fn finish(self) -> Result<(), String> {
        match self.entries.into_iter().flatten().next() {
            Some((name, _)) => Err(format!("unknown parameter `{name}`")),
            None => Ok(()),
        }
    }

    pub(super) fn number(&mut self, key: &str) -> Result<u64, String> {
        self.required(key).and_then(|value| number(key, value))
    }

    pub(super) fn small(&mut self, key: &str) -> Result<u32, String> {
        self.number(key).map(|value| value as u32)
    }

    pub(super) fn index(&mut self, key: &str) -> Result<usize, String> {
        self.number(key).map(|value| value as usize)
    }

    pub(super) fn boolean_or_false(&mut self, key: &str) -> Result<bool, String> {
        match self.take(key) {
            Some(value) => {
                value.as_bool().ok_or_else(|| format!("`{key}` must be true or false, got {value}"))
            }
            None => Ok(false),
        }
    }

    pub(super) fn numbers(&mut self, key: &str) -> Result<Vec<u64>, String> {
        self.required(key).and_then(|value| numbers(key, value))
    }

    pub(super) fn numbers_or(
        &mut self,
        key: &str,
        default: impl FnOnce() -> Vec<u64>,
    ) -> Result<Vec<u64>, String> {
        self.take(key).map_or_else(|| Ok(default()), |value| numbers(key, value))
    }

    pub(super) fn indices(&mut self, key: &str) -> Result<Vec<usize>, String> {
        Ok(self.numbers(key)?.into_iter().map(|value| value as usize).collect())
    }

    /// A list of basis vectors.
    pub(super) fn bases(&mut self, key: &str) -> Result<Option<Vec<Vec<u64>>>, String> {
        self.take(key)
            .map(|value| list(key, value)?.iter().map(|basis| numbers(key, *basis)).collect())
            .transpose()
    }

    /// `CGALayout`, of a tensor of `rank` dimensions; absent for one block.
    pub(super) fn cga(&mut self, rank: usize) -> Result<Vec<Vec<u64>>, String> {
        let bases = self.bases("CGALayout")?.unwrap_or_default();
        check_rank("CGALayout", &bases, rank)?;
        Ok(bases)
    }
}

/// Checks that every basis has `rank` coordinates.
pub(super) fn check_rank(key: &str, bases: &[Vec<u64>], rank: usize) -> Result<(), String> {
    match bases.iter().find(|basis| basis.len() != rank) {
        Some(basis) => Err(format!("basis {basis:?} of `{key}` has {} coordinates, not {rank}", basis.len())),
        None => Ok(()),
    }
}

fn number(key: &str, value: Attr<'_>) -> Result<u64, String> {
    let small = value.as_int().and_then(|value| u32::try_from(value).ok());
    small.map(u64::from).ok_or_else(|| format!("`{key}` must be a number of 32 bits, got {value}"))
}

fn list<'c>(key: &str, value: Attr<'c>) -> Result<Vec<Attr<'c>>, String> {
    value.as_array().ok_or_else(|| format!("`{key}` must be a list, got {value}"))
}

fn numbers(key: &str, value: Attr<'_>) -> Result<Vec<u64>, String> {
    list(key, value)?.into_iter().map(|value| number(key, value)).collect()
}
