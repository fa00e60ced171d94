//! The probe agent on a server without the hub: no reader of the log, no journal, no routing. `cargo xtask bench --hub`
//! measures against it what the hub costs a message. Its flags are those of every program that hosts its own agents.

use mimalloc::MiMalloc;
use switchboard_host::demo::Probe;
use switchboard_host::{Host, StartError};

/// As the binary has it, so that only the hub makes a difference.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    Host::new().agent("probe", Probe).run().await
}
