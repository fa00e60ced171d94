//! The A2A front door: an accept loop, guards and callers in `edge`, the protocol's bindings in `bindings`.
//!
//! A request walks one way: bytes, guards, caller, binding, engine. [`Server`] is all of it; whoever starts it passes
//! the listener, the kernel, the callers and the stop signal in.

mod bindings;
mod body;
mod caller;
mod edge;
mod exchange;
mod health;
pub mod metric_definitions;
mod options;
mod state;

pub use caller::{Authenticator, Identity, OpenDoor};
pub use edge::Server;
pub use metric_definitions::{MetricsError, describe_metrics, install_metrics};
pub use options::{CardDefault, Options};

pub(crate) use body::Body;
pub(crate) use exchange::{Exchange, Measured};
pub(crate) use state::State;
