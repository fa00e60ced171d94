//! The A2A front door: an accept loop, guards and callers in `edge`, the protocol's bindings in `bindings`.
//!
//! A request walks one way: bytes, guards, caller, binding, engine. [`Server`] is all of it; whoever starts it passes
//! the listener, the kernel, the callers and the stop signal in.

mod api;
mod bindings;
mod body;
mod caller;
mod door;
mod edge;
mod exchange;
mod health;
pub mod metric_definitions;
mod options;
mod responses;
mod state;

// Only for the fuzz targets: they try whatever reads a caller's bytes.
#[doc(hidden)]
pub use bindings::page_token;
pub use caller::{Authenticator, Identity, OpenDoor};
pub use edge::{Server, Tls, TlsError, TlsPart};
pub use metric_definitions::{MetricsError, describe_metrics, install_metrics};
pub use options::{CardDefault, Options};
pub use responses::ResponseGauge;

pub(crate) use body::Body;
pub(crate) use door::Door;
pub(crate) use exchange::{Exchange, Measured};
pub(crate) use state::State;
