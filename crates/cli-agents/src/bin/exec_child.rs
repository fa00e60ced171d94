//! The helper process that the tests of this crate start their programs with. The server uses its own binary, whose
//! command `exec-child` calls the same function.

use std::process::ExitCode;

fn main() -> ExitCode {
    switchboard_cli_agents::exec_child::intercept().unwrap_or(ExitCode::FAILURE)
}
