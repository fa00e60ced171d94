//! `fake-model [--port N]`: the endpoint by itself, for trying an agent by hand. It prints its address and then a line for
//! every request, until it is stopped.

#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::time::Duration;

use clap::Parser;
use fake_model::FakeModel;

#[derive(Parser)]
#[command(about = "A model endpoint that does as the prompt says")]
struct Arguments {
    /// The port on 127.0.0.1; any free one if it is not given
    #[arg(long, default_value_t = 0)]
    port: u16,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let model = FakeModel::start_at(Arguments::parse().port)?;
    println!("{}", model.url());
    let mut printed = 0;
    loop {
        for seen in model.requests().iter().skip(printed) {
            let side = if seen.is_side { " (side)" } else { "" };
            println!("{} {} {}{side}: {}", seen.method, seen.path, seen.model, seen.prompt.escape_debug());
            printed += 1;
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
            stopped = tokio::signal::ctrl_c() => return Ok(stopped?),
        }
    }
}
