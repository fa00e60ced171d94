//! The binary: everything it does lives in the library, where tests can reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    switchboard::cli::run()
}
