//! Banks of shared memory: which lanes of an access are served together, as data.
//!
//! Shared memory answers an access in wavefronts. The lanes of one group are served together; a bank gives one word of
//! 4 bytes a wavefront, so a group takes as many as its busiest bank has distinct words. Which lanes form a group
//! depends on the width of the access and its direction:
//!
//! | GPU | access | banks | lanes served together |
//! | --- | --- | ---: | --- |
//! | gfx90a, gfx942 | 12 and 16 bytes read | 32 | 8 groups: 0–3 20–23, 4–7 16–19, 8–11 28–31, 12–15 24–27, and 32 on |
//! | gfx950 | 16 bytes read | 64 | 4 groups: 0–3 12–15 20–27, 4–11 16–19 28–31, and 32 on |
//! | gfx950 | 12 bytes read | 32 | as on gfx942 |
//! | gfx950 | 8 bytes read | 64 | 32 consecutive lanes |
//! | any other | | 32 | consecutive lanes, as many as fill the banks once |
//!
//! Sources: AMD's article on LDS bank conflicts in CK-Tile (`ds_read_b128` and `ds_write_b128` of CDNA3) and
//! HipKittens' measurements (CDNA3's 12 bytes, CDNA4). Of gfx11 it is known only that its order for wide accesses
//! differs from gfx12's, not how: there consecutive lanes are counted.

/// One row of the table.
#[derive(Debug)]
pub struct Rule {
    /// Bytes of a lane.
    pub bytes: u64,
    /// Whether it is for stores.
    pub write: bool,
    /// Number of banks.
    pub banks: u64,
    /// Lanes served together, as masks; empty for consecutive lanes that fill the banks once.
    pub groups: &'static [u64],
}

/// How the shared memory of a GPU serves accesses.
#[derive(Debug)]
pub struct Banks {
    rules: &'static [Rule],
    /// NVIDIA's: parts of a warp that read the same in pairs of lanes are served together (docs/simt.md).
    pairs: bool,
}

/// Lanes `a..=b` of each pair, and the same 32 lanes on if asked for.
const fn lanes(ranges: &[(u32, u32)], plus: u32) -> u64 {
    let (mut mask, mut i) = (0, 0);
    while i < ranges.len() {
        let (a, b) = ranges[i];
        mask |= (u64::MAX >> (63 - (b - a))) << (a + plus);
        i += 1;
    }
    mask
}

const EIGHTHS: &[u64] = &[
    lanes(&[(0, 3), (20, 23)], 0),
    lanes(&[(4, 7), (16, 19)], 0),
    lanes(&[(8, 11), (28, 31)], 0),
    lanes(&[(12, 15), (24, 27)], 0),
    lanes(&[(0, 3), (20, 23)], 32),
    lanes(&[(4, 7), (16, 19)], 32),
    lanes(&[(8, 11), (28, 31)], 32),
    lanes(&[(12, 15), (24, 27)], 32),
];

const QUARTERS: &[u64] = &[
    lanes(&[(0, 3), (12, 15), (20, 27)], 0),
    lanes(&[(4, 11), (16, 19), (28, 31)], 0),
    lanes(&[(0, 3), (12, 15), (20, 27)], 32),
    lanes(&[(4, 11), (16, 19), (28, 31)], 32),
];

/// NVIDIA, all GPUs.
pub static NVIDIA: Banks = Banks { rules: &[], pairs: true };
/// gfx90a and gfx942.
pub static CDNA3: Banks = Banks {
    rules: &[
        Rule { bytes: 12, write: false, banks: 32, groups: EIGHTHS },
        Rule { bytes: 16, write: false, banks: 32, groups: EIGHTHS },
    ],
    pairs: false,
};
/// gfx950.
pub static CDNA4: Banks = Banks {
    rules: &[
        Rule { bytes: 8, write: false, banks: 64, groups: &[] },
        Rule { bytes: 12, write: false, banks: 32, groups: EIGHTHS },
        Rule { bytes: 16, write: false, banks: 64, groups: QUARTERS },
    ],
    pairs: false,
};
/// gfx11 and gfx12.
pub static PLAIN: Banks = Banks { rules: &[], pairs: false };

static OTHER: Rule = Rule { bytes: 0, write: false, banks: 32, groups: &[] };

/// What a shared access costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waves {
    /// Wavefronts.
    pub total: u64,
    /// The least number of wavefronts for the words touched.
    pub min: u64,
    /// Wavefronts beyond the first of each group.
    pub conflicts: u64,
}

impl Waves {
    fn add(&mut self, o: Waves) {
        self.total += o.total;
        self.min += o.min;
        self.conflicts += o.conflicts;
    }
}

impl Banks {
    /// Wavefronts of an access by lanes that each access `bytes`, aligned to `align`, from their address on.
    pub fn waves(&self, addresses: &[u64], active: u64, bytes: u64, align: u64, write: bool) -> Waves {
        if active == 0 {
            return Waves::default();
        }
        if self.pairs {
            return groups(&OTHER, addresses, active, bytes, self.pairs && !write);
        }
        // AMD's widest access has 16 bytes; where they are not aligned to that, it is two of 8 (`ds_read2_b64`), to
        // which the rules of the plain ones do not apply.
        let split = bytes == 16 && align < 16;
        let width = if split { 8 } else { 16 };
        let mut all = Waves::default();
        for first in (0..bytes).step_by(width) {
            let n = (bytes - first).min(width as u64);
            let part: Vec<u64> = addresses.iter().map(|a| a + first).collect();
            let rule = self.rules.iter().find(|r| !split && r.bytes == n && r.write == write);
            all.add(groups(rule.unwrap_or(&OTHER), &part, active, n, false));
        }
        all
    }
}

/// Serves group by group. `pairs`: two neighbouring groups that read the same in pairs of lanes are one.
fn groups(rule: &Rule, addresses: &[u64], active: u64, bytes: u64, pairs: bool) -> Waves {
    let mut out = Waves::default();
    let mut words = 0;
    let mut serve = |mask: u64| {
        if let Some((worst, n)) = group(rule.banks, addresses, active & mask, bytes) {
            out.total += worst;
            out.conflicts += worst - 1;
            words += n;
        }
    };
    if rule.groups.is_empty() {
        let size = (4 * rule.banks / bytes.clamp(4, 4 * rule.banks)) as usize;
        let mut start = 0;
        while start < addresses.len() {
            let twice = start + 2 * size;
            let merge = pairs
                && matches!(bytes, 8 | 16)
                && start % (2 * size) == 0
                && [1, 2].into_iter().any(|x| {
                    let same = |l: usize| {
                        active >> l & active >> (l ^ x) & 1 == 0 || addresses[l] == addresses[l ^ x]
                    };
                    (start..twice).all(same)
                });
            let end = (if merge { twice } else { start + size }).min(addresses.len());
            serve((u64::MAX >> (64 - (end - start))) << start);
            start = end;
        }
    } else {
        rule.groups.iter().for_each(|m| serve(*m));
    }
    out.min = words.div_ceil(rule.banks).max(1);
    out
}

/// Words of the busiest bank, and distinct words, of the lanes of one group.
fn group(banks: u64, addresses: &[u64], active: u64, bytes: u64) -> Option<(u64, u64)> {
    let mut first = [u64::MAX; 64];
    let mut more: Vec<u64> = Vec::new();
    let mut left = active;
    while left != 0 {
        let a = addresses[left.trailing_zeros() as usize];
        left &= left - 1;
        for w in a >> 2..=(a + bytes - 1) >> 2 {
            let bank = (w % banks) as usize;
            if first[bank] == u64::MAX {
                first[bank] = w;
            } else if first[bank] != w {
                more.push(w);
            }
        }
    }
    if active == 0 {
        return None;
    }
    let words = first.iter().filter(|w| **w != u64::MAX).count() as u64;
    if more.is_empty() {
        return Some((1, words));
    }
    more.sort_unstable();
    more.dedup();
    let mut load = [1u64; 64];
    more.iter().for_each(|w| load[(w % banks) as usize] += 1);
    Some((load.into_iter().max().unwrap_or(1), words + more.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(n: u64, f: impl Fn(u64) -> u64) -> Vec<u64> {
        (0..n).map(f).collect()
    }

    #[test]
    fn common_patterns_on_nvidia() {
        let all = 0xffff_ffff;
        let waves = |f: &dyn Fn(u64) -> u64, bytes| {
            let w = NVIDIA.waves(&each(32, f), all, bytes, bytes, false);
            (w.total, w.min)
        };
        assert_eq!(waves(&|l| 4 * l, 4), (1, 1));
        assert_eq!(waves(&|l| 8 * l, 4), (2, 1));
        assert_eq!(waves(&|l| 128 * l, 4), (32, 1));
        assert_eq!(waves(&|_| 8, 4), (1, 1));
        assert_eq!(waves(&|l| 8 * l, 8), (2, 2));
        assert_eq!(waves(&|l| 16 * l, 16), (4, 4));
        // Rows of 256 bytes without padding: the eight lanes of a quarter hit the same four banks.
        assert_eq!(waves(&|l| 256 * l, 16), (32, 4));
        assert_eq!(waves(&|l| 2 * l, 2), (1, 1));
        // One address: a half of the warp is served at once.
        assert_eq!(waves(&|_| 0, 16), (2, 1));
        assert_eq!(waves(&|_| 0, 8), (1, 1));
        // Pairs of neighbours, and of lanes two apart; no pairs at all.
        assert_eq!(waves(&|l| 16 * (l / 2), 16), (2, 2));
        assert_eq!(waves(&|l| 16 * (l / 4 * 2 + l % 2), 16), (2, 2));
        assert_eq!(waves(&|l| 16 * (l % 8), 16), (4, 4));
        // Stores are not served in pairs.
        let store = NVIDIA.waves(&each(32, |_| 0), all, 16, 16, true);
        assert_eq!(store, Waves { total: 4, min: 1, conflicts: 0 });
    }

    /// Lanes that are served together meet in a bank; lanes that are not do not disturb each other.
    #[test]
    fn groups_of_cdna() {
        let total = |banks: &Banks, a: u64, b: u64, bytes, write| {
            let pair = each(64, |l| if l == b { 4096 } else { 0 });
            banks.waves(&pair, 1 << a | 1 << b, bytes, bytes, write).conflicts
        };
        // 0 and 20 are one group of gfx942, 0 and 4 two; stores go by eight consecutive lanes.
        assert_eq!((total(&CDNA3, 0, 20, 16, false), total(&CDNA3, 0, 4, 16, false)), (1, 0));
        assert_eq!((total(&CDNA3, 32, 52, 12, false), total(&CDNA3, 0, 52, 12, false)), (1, 0));
        assert_eq!((total(&CDNA3, 0, 20, 16, true), total(&CDNA3, 0, 4, 16, true)), (0, 1));
        // gfx950: sixteen lanes and 64 banks.
        assert_eq!((total(&CDNA4, 0, 27, 16, false), total(&CDNA4, 0, 28, 16, false)), (1, 0));
        assert_eq!((total(&CDNA4, 4, 31, 16, false), total(&CDNA4, 0, 4, 16, false)), (1, 0));
        assert_eq!((total(&CDNA4, 0, 31, 8, false), total(&CDNA4, 0, 32, 8, false)), (1, 0));
        assert_eq!((total(&CDNA4, 0, 15, 8, true), total(&CDNA4, 0, 16, 8, true)), (1, 0));
        // 128 bytes apart is another bank where there are 64 of them.
        let near = |banks: &Banks| banks.waves(&each(64, |l| 128 * (l % 2)), 3, 16, 16, false).conflicts;
        assert_eq!((near(&CDNA3), near(&CDNA4)), (1, 0));
        // The groups are a partition of the wave.
        for groups in [EIGHTHS, QUARTERS] {
            assert_eq!(groups.iter().fold(0u64, |m, g| m ^ g), u64::MAX);
            assert_eq!(groups.iter().map(|g| g.count_ones()).sum::<u32>(), 64);
        }
    }

    #[test]
    fn sixteen_bytes_without_alignment_are_two_times_eight() {
        let rows = each(64, |l| 16 * l);
        let all = u64::MAX;
        assert_eq!(CDNA4.waves(&rows, all, 16, 16, false).total, 4);
        // Each half: 4 groups of 16 lanes, 16 bytes apart, so that two meet in each of half of the banks.
        assert_eq!(CDNA4.waves(&rows, all, 16, 8, false).total, 2 * 4 * 2);
    }
}
