//! Operations that only NVIDIA GPUs have.

mod barriers;
mod grid_dependencies;
mod tma;
mod warp_group;

use crate::target::Handlers;

/// All of them.
pub(super) const ALL: &[Handlers] =
    &[barriers::HANDLERS, grid_dependencies::HANDLERS, tma::HANDLERS, warp_group::HANDLERS];
