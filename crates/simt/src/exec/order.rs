//! Release and acquire: what fences and atomic accesses tell from thread to thread.
//!
//! A release (a write with `.release`, or a relaxed one after a fence) leaves at its location what its thread knows; an
//! acquire (a read with `.acquire`, or a relaxed one before a fence) of what was written there takes it over. Atomic
//! read-modify-writes continue what they read; a plain strong write ends it (PTX ISA, "Release and Acquire Patterns",
//! "Observation order"). Scopes are not looked at: what is seen here lies in one cluster.

use super::memory::Place;
use super::{Cta, Warp};
use crate::bytecode::*;
use crate::ir::Order;

/// A location: an address of device memory, or one of shared memory with the top bit set.
fn location(place: &Place<'_>, address: u64) -> Option<u64> {
    match place {
        Place::Global(..) => Some(address),
        Place::Shared(a) => Some(1 << 63 | u64::from(*a)),
        _ => None,
    }
}

impl<const W: usize> Cta<'_, W> {
    /// Strong reads take over what was released where they read, or do so at the next fence.
    pub(super) fn observe(
        &mut self,
        warp: &mut Warp<W>,
        (places, addresses): (&[Place<'_>; W], &[u64; W]),
        at: &Access,
    ) {
        for (l, place) in places.iter().enumerate() {
            let Some(known) = location(place, addresses[l]).and_then(|a| self.released.get(&a)) else {
                continue;
            };
            if at.order.acquire {
                warp.order.acquire(1 << l, warp.live, known);
            } else {
                warp.observed.push((1 << l, known.clone()));
            }
        }
    }

    /// Strong writes leave what their lanes release. `keep`: on top of what is there.
    pub(super) fn release_at(
        &mut self,
        warp: &mut Warp<W>,
        (places, addresses): (&[Place<'_>; W], &[u64; W]),
        at: &Access,
        keep: bool,
    ) {
        for (l, place) in places.iter().enumerate() {
            let Some(a) = location(place, addresses[l]) else { continue };
            let told = match at.order.release {
                true => Some(warp.order.publish(1 << l)),
                false => warp.fences.iter().rev().find(|f| f.lanes >> l & 1 != 0).map(|f| f.of(l)),
            };
            match (told, self.released.get_mut(&a)) {
                (Some(told), Some(known)) if keep => known.join(&told),
                (Some(told), _) => {
                    self.released.insert(a, told);
                }
                (None, Some(_)) if !keep => {
                    self.released.remove(&a);
                }
                (None, _) => {}
            }
        }
    }

    pub(super) fn fence(&mut self, warp: &mut Warp<W>, order: Order, device: bool) {
        if device {
            warp.order.fence_device();
        }
        if !self.shape.program.acquires {
            return;
        }
        if order.acquire {
            for (lanes, known) in std::mem::take(&mut warp.observed) {
                if lanes & warp.mask != 0 {
                    warp.order.acquire(lanes, warp.live, &known);
                } else {
                    warp.observed.push((lanes, known));
                }
            }
        }
        if order.release {
            let mask = warp.mask;
            warp.fences.retain(|f| f.lanes & !mask != 0);
            warp.fences.push(warp.order.snapshot(mask));
        }
    }
}
