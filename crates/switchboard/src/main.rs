//! The binary: everything it does lives in the library, where tests can reach it.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A message is decoded, folded and encoded in many small pieces; the system's allocator took a tenth of the time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // First of all, and alone: it becomes another program at once.
    switchboard_cli_agents::exec_child::intercept().unwrap_or_else(switchboard::run)
}
