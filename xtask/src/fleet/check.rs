//! The fleet as its README shows it: every agent is sent a message by name, and nothing runs once it is stopped.

use std::net::TcpStream;
use std::process::Stdio;

use anyhow::Context;

use crate::fleet::Fleet;
use crate::interop::server::{command, greeting};
use crate::program;
use crate::steps::Counts;

/// An agent, what it is sent, and what its answer has in it.
const SENT: [(&str, &str, &str); 4] = [
    ("guide", "hello", "What is your name?"),
    ("counter", "one two three", "3"),
    ("reviewer", "This is short.", "every sentence is short enough"),
    ("titler", "a walk along the river", "A Walk Along The River"),
];

/// The step of `cargo xtask test`.
pub(crate) fn step() -> anyhow::Result<Counts> {
    program::build_workspace()?;
    let data = tempfile::tempdir()?;
    let mut serve = command(&["serve", "--bind", "127.0.0.1:0"]);
    serve.stdout(Stdio::piped()).env("SWITCHBOARD_LOG_LEVEL", "warn");
    let mut fleet = Fleet::start(serve, data.path())?;
    let output = fleet.server.stdout.take().context("the server has no output")?;
    let url = greeting(output).context("the server did not start")?.base_url;
    let mut counts = Counts::default();
    for (agent, text, expected) in SENT {
        let said = program::output(command(&["send", "--quiet"]).arg(format!("{url}/a2a/{agent}")).arg(text));
        count(&mut counts, agent, said.is_ok_and(|said| said.contains(expected)));
    }
    let addresses = [&url, fleet.reviewer.url(), fleet.titler.url()].map(str::to_owned);
    count(&mut counts, "graceful shutdown", fleet.stop()?.success());
    drop(fleet);
    let is_gone = |url: &String| TcpStream::connect(url.trim_start_matches("http://")).is_err();
    count(&mut counts, "nothing left running", addresses.iter().all(is_gone));
    Ok(counts)
}

fn count(counts: &mut Counts, name: &str, is_passed: bool) {
    println!("{} fleet: {name}", if is_passed { "ok" } else { "not ok" });
    counts.add(Counts { passed: is_passed.into(), failed: (!is_passed).into() });
}
