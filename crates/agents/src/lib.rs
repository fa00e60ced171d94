//! Ready-made agents: the demo fleet, small and useful, and command-line coding agents.

pub mod cli;
mod echo;
mod guide;
mod probe;

pub use echo::Echo;
pub use guide::Guide;
pub use probe::Probe;
