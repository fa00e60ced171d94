//! The demo agents, small and useful: what is served where no agent is configured.

mod echo;
mod guide;
mod probe;

pub use echo::Echo;
pub use guide::Guide;
pub use probe::Probe;
