//! Ready-made agents: the demo fleet, small and useful.

mod echo;
mod guide;
mod probe;

pub use echo::Echo;
pub use guide::Guide;
pub use probe::Probe;
