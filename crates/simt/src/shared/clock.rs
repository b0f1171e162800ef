//! Who knows of whose accesses: vector clocks over the lanes of all warps of a cluster.
//!
//! Every warp counts its synchronizations; the count at an access is its *time*. What a thread knows is, for every lane
//! of every warp, the time up to which that lane's accesses happened before (Flanagan and Freund, "FastTrack: Efficient
//! and Precise Dynamic Race Detection"; PTX ISA, "Memory Consistency Model": causality order). Nearly always a thread
//! knows as much of one lane as of the others of its warp, so a [`Clock`] has one number a warp, and a number a lane
//! only where they differ.
//!
//! The lanes of a warp know the same as long as all of them synchronize together; a [`Thread`] clock of its own is kept
//! for lanes that learned something alone. On NVIDIA nothing orders two lanes of a warp but what orders any two
//! threads: barriers, barrier objects, release and acquire, and `bar.warp.sync`, which orders the memory accesses of the
//! lanes that it names. Shuffles, votes, `elect` and matrix instructions only wait for each other: their descriptions
//! say nothing of memory (PTX ISA, "bar.warp.sync", "shfl.sync").

/// What is known of the accesses of all lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// For every warp, the time up to which all of its lanes' accesses are known.
    all: Vec<u32>,
    /// Warps with lanes of which more is known: the warp, and the time of each lane.
    lanes: Vec<(u32, Box<[u32]>)>,
}

impl Clock {
    /// Knows nothing.
    pub fn new(warps: u32) -> Clock {
        Clock { all: vec![0; warps as usize], lanes: Vec::new() }
    }

    /// Whether an access of a lane is known; `lane` may be [`SEVERAL`](super::SEVERAL).
    #[inline(always)]
    pub fn knows(&self, warp: u32, lane: u32, time: u32) -> bool {
        time <= self.all[warp as usize] || (!self.lanes.is_empty() && self.knows_lane(warp, lane, time))
    }

    #[cold]
    fn knows_lane(&self, warp: u32, lane: u32, time: u32) -> bool {
        let of = self.lanes.iter().find(|(w, _)| *w == warp);
        of.and_then(|(_, times)| times.get(lane as usize)).is_some_and(|t| time <= *t)
    }

    /// Takes over what another clock knows.
    pub fn join(&mut self, other: &Clock) {
        for (a, b) in self.all.iter_mut().zip(&other.all) {
            *a = (*a).max(*b);
        }
        for (warp, times) in &other.lanes {
            self.learn_lanes(*warp, |l| times[l], times.len());
        }
        if !self.lanes.is_empty() {
            self.settle();
        }
    }

    /// Knows the accesses of all lanes of a warp up to a time.
    fn learn_all(&mut self, warp: u32, time: u32) {
        let all = &mut self.all[warp as usize];
        *all = time.max(*all);
        if !self.lanes.is_empty() {
            self.settle();
        }
    }

    /// Knows the accesses of some lanes of a warp of `width` lanes up to a time.
    pub fn learn(&mut self, warp: u32, lanes: u64, width: usize, time: impl Fn(usize) -> u32) {
        self.learn_lanes(warp, |l| if lanes >> l & 1 != 0 { time(l) } else { 0 }, width);
        self.settle();
    }

    fn learn_lanes(&mut self, warp: u32, time: impl Fn(usize) -> u32, width: usize) {
        let least = self.all[warp as usize];
        let at = match self.lanes.iter().position(|(w, _)| *w == warp) {
            Some(i) => i,
            None => {
                self.lanes.push((warp, vec![least; width].into()));
                self.lanes.len() - 1
            }
        };
        for (l, t) in self.lanes[at].1.iter_mut().enumerate() {
            *t = (*t).max(time(l));
        }
    }

    /// What is known of every lane of a warp is known of the warp.
    fn settle(&mut self) {
        let all = &mut self.all;
        self.lanes.retain(|(warp, times)| {
            let known = &mut all[*warp as usize];
            *known = times.iter().fold(u32::MAX, |a, t| a.min(*t)).max(*known);
            times.iter().any(|t| *t > *known)
        });
    }
}

/// What a thread knows: accesses that happened before, and those of them that the asynchronous proxy sees too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knows {
    /// Accesses that happened before.
    pub seen: Clock,
    /// Writes followed by `fence.proxy.async`, whatever state spaces that names.
    pub proxy: Clock,
    /// Writes followed by one that names none, or global memory.
    pub proxy_device: Clock,
    /// Accesses of device memory that happened before, where barriers order those of shared memory only (on AMD).
    pub device: Option<Clock>,
}

impl Knows {
    /// Nothing; `apart` where device memory needs fences of its own.
    pub fn new(warps: u32, apart: bool) -> Knows {
        let device = apart.then(|| Clock::new(warps));
        Knows { seen: Clock::new(warps), proxy: Clock::new(warps), proxy_device: Clock::new(warps), device }
    }

    /// Accesses of device memory that happened before.
    pub fn device(&self) -> &Clock {
        self.device.as_ref().unwrap_or(&self.seen)
    }

    /// Takes over what another thread knows.
    pub fn join(&mut self, other: &Knows) {
        self.seen.join(&other.seen);
        self.proxy.join(&other.proxy);
        self.proxy_device.join(&other.proxy_device);
        if let (Some(mine), Some(other)) = (&mut self.device, &other.device) {
            mine.join(other);
        }
    }

    fn fence(&mut self, device: bool) {
        self.proxy.join(&self.seen);
        if device {
            let Knows { seen, proxy_device, device, .. } = self;
            proxy_device.join(device.as_ref().unwrap_or(seen));
        }
    }
}

/// What lanes of a warp knew and did at some time.
#[derive(Clone)]
pub struct Snapshot {
    /// The lanes.
    pub lanes: u64,
    warp: u32,
    time: u32,
    common: Knows,
    own: Vec<Option<Box<Knows>>>,
    fenced: Box<[u32]>,
    fenced_device: Box<[u32]>,
}

impl Snapshot {
    /// What a lane knew and did.
    pub fn of(&self, lane: usize) -> Knows {
        let mut k = match self.own.get(lane) {
            Some(Some(k)) => (**k).clone(),
            _ => self.common.clone(),
        };
        let width = self.fenced.len();
        k.seen.learn(self.warp, 1 << lane, width, |_| self.time);
        k.proxy.learn(self.warp, 1 << lane, width, |l| self.fenced[l]);
        k.proxy_device.learn(self.warp, 1 << lane, width, |l| self.fenced_device[l]);
        if let Some(device) = &mut k.device {
            device.learn(self.warp, 1 << lane, width, |_| self.time);
        }
        k
    }
}

/// What the lanes of one warp know.
pub struct Lanes {
    /// The warp's number in its cluster.
    warp: u32,
    /// Its time.
    now: u32,
    /// The lanes that it was started with.
    exist: u64,
    common: Knows,
    /// What single lanes know, which is `common` and more; empty where none knows more.
    own: Vec<Option<Box<Knows>>>,
    /// The time of each lane's last `fence.proxy.async`.
    fenced: Box<[u32]>,
    /// The same of those that are for device memory.
    fenced_device: Box<[u32]>,
    /// The time of the warp's last fence of device memory.
    device: u32,
}

impl Lanes {
    /// Those of warp number `warp` of `warps` in a cluster, of the lanes `exist` of `width`; see [`Knows::new`] for `apart`.
    pub fn new((warp, warps): (u32, u32), exist: u64, width: usize, apart: bool) -> Lanes {
        let fenced: Box<[u32]> = vec![0; width].into();
        let fenced_device = fenced.clone();
        let common = Knows::new(warps, apart);
        Lanes { warp, now: 1, exist, common, own: Vec::new(), fenced, fenced_device, device: 0 }
    }

    /// The warp's time.
    pub fn now(&self) -> u32 {
        self.now
    }

    /// The times of the lanes' proxy fences.
    pub fn fenced(&self) -> &[u32] {
        &self.fenced
    }

    /// The times of those that are for device memory.
    pub fn fenced_device(&self) -> &[u32] {
        &self.fenced_device
    }

    /// What a lane knows of other lanes; of a number that is no lane, what all lanes know.
    #[inline(always)]
    pub fn of(&self, lane: u32) -> &Knows {
        match self.own.get(lane as usize) {
            Some(Some(k)) => k,
            _ => &self.common,
        }
    }

    /// What some lanes together tell others: all they know and all they did. The warp's time goes on.
    pub fn publish(&mut self, lanes: u64) -> Knows {
        self.publish_until(lanes, self.now)
    }

    /// What all lanes tell at a barrier: of device memory, where that is apart, what they did before the last fence.
    pub fn publish_at_barrier(&mut self, lanes: u64) -> Knows {
        self.publish_until(lanes, self.device)
    }

    /// The same; `device` is when accesses of device memory end that are told of.
    fn publish_until(&mut self, lanes: u64, device: u32) -> Knows {
        let mut k = self.common.clone();
        for (_, own) in self.own.iter().enumerate().filter(|(l, _)| lanes >> l & 1 != 0) {
            if let Some(own) = own {
                k.join(own);
            }
        }
        // Lanes that never were did nothing.
        let all = lanes | !self.exist;
        let (warp, width, exist) = (self.warp, self.fenced.len(), self.exist);
        let fenced = |clock: &mut Clock, fenced: &[u32]| {
            let ran = fenced.iter().enumerate().filter(|(l, _)| lanes & exist >> l & 1 != 0);
            let (first, last) = ran.fold((u32::MAX, 0), |(a, b), (_, t)| (a.min(*t), b.max(*t)));
            if all == u64::MAX && first == last {
                clock.learn_all(warp, first);
            } else {
                clock.learn(warp, all, width, |l| if exist >> l & 1 != 0 { fenced[l] } else { last });
            }
        };
        fenced(&mut k.proxy, &self.fenced);
        fenced(&mut k.proxy_device, &self.fenced_device);
        if all == u64::MAX {
            k.seen.learn_all(warp, self.now);
        } else {
            k.seen.learn(warp, all, width, |_| self.now);
        }
        if let Some(clock) = &mut k.device {
            let width = self.fenced.len();
            clock.learn(self.warp, all, width, |_| device);
        }
        self.now += 1;
        k
    }

    /// A fence of device memory: what the warp did so far is told at the next barrier.
    pub fn fence_device(&mut self) {
        if self.common.device.is_some() {
            self.device = self.now;
            self.now += 1;
        }
    }

    /// What some lanes know and did so far, each for itself. The warp's time goes on.
    pub fn snapshot(&mut self, lanes: u64) -> Snapshot {
        let s = Snapshot {
            lanes,
            warp: self.warp,
            time: self.now,
            common: self.common.clone(),
            own: self.own.clone(),
            fenced: self.fenced.clone(),
            fenced_device: self.fenced_device.clone(),
        };
        self.now += 1;
        s
    }

    /// Some of the `live` lanes learn something.
    pub fn acquire(&mut self, lanes: u64, live: u64, k: &Knows) {
        if lanes & live == live {
            self.common.join(k);
            self.own.iter_mut().flatten().for_each(|o| o.join(k));
            return;
        }
        self.own.resize(self.fenced.len(), None);
        for (_, own) in self.own.iter_mut().enumerate().filter(|(l, _)| lanes >> l & 1 != 0) {
            own.get_or_insert_with(|| Box::new(self.common.clone())).join(k);
        }
    }

    /// Some of the `live` lanes learn all that they know and did.
    pub fn sync(&mut self, lanes: u64, live: u64) {
        let k = self.publish(lanes);
        if lanes & live == live {
            self.meet(&k);
        } else {
            self.acquire(lanes, live, &k);
        }
    }

    /// All lanes learn something that includes what each of them knows.
    pub fn meet(&mut self, k: &Knows) {
        self.common.join(k);
        self.own.clear();
        self.now += 1;
    }

    /// `fence.proxy.async` in some lanes: what they know and did so far, the asynchronous proxy sees; of device memory, where
    /// it is for that, too.
    pub fn fence_proxy(&mut self, lanes: u64, live: u64, device: bool) {
        for l in (0..self.fenced.len()).filter(|l| lanes >> l & 1 != 0) {
            self.fenced[l] = self.now;
            if device {
                self.fenced_device[l] = self.now;
            }
        }
        // What is written from now on needs another fence.
        self.now += 1;
        if lanes & live == live {
            self.common.fence(device);
        } else {
            self.own.resize(self.fenced.len(), None);
            for (_, own) in self.own.iter_mut().enumerate().filter(|(l, _)| lanes >> l & 1 != 0) {
                own.get_or_insert_with(|| Box::new(self.common.clone()));
            }
        }
        let ran = self.own.iter_mut().enumerate().filter(|(l, _)| lanes >> l & 1 != 0);
        ran.filter_map(|(_, o)| o.as_mut()).for_each(|k| k.fence(device));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_lanes_know_the_warp_knows() {
        let mut c = Clock::new(2);
        c.learn(1, 0b01, 2, |_| 5);
        assert!(c.knows(1, 0, 5) && !c.knows(1, 1, 5) && !c.knows(1, 64, 5));
        let mut d = Clock::new(2);
        d.learn(1, 0b10, 2, |_| 7);
        c.join(&d);
        assert!(c.knows(1, 64, 5) && c.knows(1, 1, 7) && !c.knows(1, 0, 7));
        assert_eq!(c.all, [0, 5]);
    }

    #[test]
    fn a_lane_publishes_what_it_knows_and_did() {
        let mut w = Lanes::new((0, 2), 0b11, 2, false);
        let k = w.publish(0b01);
        assert!(k.seen.knows(0, 0, 1) && !k.seen.knows(0, 1, 1));
        w.sync(0b11, 0b11);
        let k = w.publish(0b01);
        assert!(k.seen.knows(0, 1, 2) && !k.seen.knows(0, 1, 4));
        // The other warp's lane 1 learns it alone, and the others by a synchronization.
        let mut v = Lanes::new((1, 2), 0b11, 2, false);
        v.acquire(0b10, 0b11, &k);
        assert!(v.of(1).seen.knows(0, 0, 4) && !v.of(0).seen.knows(0, 0, 4));
        v.sync(0b11, 0b11);
        assert!(v.of(0).seen.knows(0, 0, 4));
    }

    #[test]
    fn lanes_that_do_not_exist_hold_nobody_back() {
        let mut w = Lanes::new((0, 1), 0b01, 2, false);
        let k = w.publish(0b01);
        assert!(k.seen.knows(0, 64, 1), "{k:?}");
    }
}
