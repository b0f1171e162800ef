//! Linear layouts over F2: algebra, encodings and hardware plans.

mod action;
mod dim;
pub mod encoding;
mod error;
pub mod f2;
mod layout;
pub mod plan;
pub mod target;

pub use action::RegisterAction;
pub use dim::{Dim, standard_out_dims};
pub use encoding::Encoding;
pub use error::{Error, Result};
pub use layout::{BasesDisplay, LinearLayout, MatrixDisplay, Point, TableDisplay};
