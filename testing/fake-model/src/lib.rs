//! A model endpoint that does as the prompt says, so that real command-line agents can be run without a model: the prompt
//! carries directives such as `[[bash ls]]` or `[[status 429 2]]`, and the endpoint answers accordingly, in whichever of
//! four wires it was asked. It listens on loopback, serves nothing else, and remembers every request.

mod answer;
mod conversation;
mod directive;
mod fake;
mod seen;
mod server;
mod tools;
mod wire;

pub use directive::{Directive, Unreadable};
pub use fake::{FakeModel, Missed};
pub use seen::Seen;
pub use wire::Wire;
