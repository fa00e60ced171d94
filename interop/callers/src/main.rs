//! `callers BASE_URL [PART OF A NAME]…`: every operation of the client against an agent that somebody else's SDK serves,
//! once for each interface on its card. Prints `ok NAME` or `not ok NAME: why`, and ends with 1 if a check failed.
//!
//! What a server does not offer has a name of its own, `NAME-refused`: it must be refused so that a program can tell. What
//! it offers and gets wrong itself is `NAME-broken`, and the table says how.

#![expect(clippy::print_stdout, reason = "the results are read from standard output")]

mod caller;
mod checks;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use switchboard_a2a::{ErrorKind, Version, parse_version};
use switchboard_client::{Binding, Client, ClientError, Context, Peer, egress};

use crate::caller::Caller;

/// No check needs this long; one that hangs must not stop the others.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the server took what it was asked for.
pub(crate) enum Answer {
    /// As one would expect.
    Given,
    /// It does not offer this.
    Refused,
    /// It offers this and gets it wrong, however it is asked.
    Broken,
}

/// One check's result.
pub(crate) type Checked = anyhow::Result<Answer>;

/// The checks of one interface.
pub(crate) struct Run<'a> {
    caller: &'a Caller,
    wanted: &'a [String],
    failed: u32,
}

impl Run<'_> {
    /// Waits for a check, unless others are wanted, and says how it ended.
    pub(crate) async fn check(&mut self, operation: &str, check: impl Future<Output = Checked>) {
        let name = format!("{}-{operation}", self.caller.name);
        if !self.wanted.is_empty() && !self.wanted.iter().any(|part| name.contains(part)) {
            return;
        }
        let checked = match tokio::time::timeout(PATIENCE, check).await {
            Ok(checked) => checked,
            Err(_) => Err(anyhow::anyhow!("it took longer than {PATIENCE:?}")),
        };
        match checked {
            Ok(Answer::Given) => println!("ok {name}"),
            Ok(Answer::Refused) => println!("ok {name}-refused"),
            Ok(Answer::Broken) => println!("ok {name}-broken"),
            Err(error) => {
                self.failed += 1;
                let why: Vec<String> = format!("{error:#}").split_whitespace().map(str::to_owned).collect();
                println!("not ok {name}: {}", why.join(" "));
            }
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().context("usage: callers BASE_URL [PART OF A NAME]…")?;
    let wanted: Vec<String> = arguments.collect();
    let mut failed = 0;
    for (binding, version) in interfaces(&address).await? {
        let caller = Caller::new(&address, binding, version)?;
        let mut run = Run { caller: &caller, wanted: &wanted, failed: 0 };
        checks::run(&mut run, &caller).await;
        failed += run.failed;
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the card offers, in its order, each once.
async fn interfaces(address: &str) -> anyhow::Result<Vec<(Binding, Version)>> {
    let client = Client::new(egress()?, Peer::new(address))?;
    let found = client.card(&Context::default()).await?;
    let mut offered = Vec::new();
    for interface in &found.card.supported_interfaces {
        let binding = Binding::from_name(&interface.protocol_binding);
        let version = match parse_version(&interface.protocol_version).map(|version| version.major) {
            Some(0) => Version::V03,
            _ => Version::V1,
        };
        let Some(binding) = binding else { continue };
        if !offered.contains(&(binding, version)) {
            offered.push((binding, version));
        }
    }
    anyhow::ensure!(!offered.is_empty(), "the card offers nothing that can be called");
    Ok(offered)
}

/// What an error says about an operation that need not be there: that it is not offered, by the server or already by the
/// version, or that the server tried and failed. Anything else is an error of ours.
pub(crate) fn told_by(error: ClientError) -> Checked {
    use ErrorKind::{ExtendedCardNotConfigured, Internal, MethodNotFound, PushNotSupported, UnsupportedOperation};
    let refusals = [ExtendedCardNotConfigured, MethodNotFound, PushNotSupported, UnsupportedOperation];
    match &error {
        ClientError::Agent(told) if refusals.contains(&told.kind) => Ok(Answer::Refused),
        ClientError::Agent(told) if told.kind == Internal => Ok(Answer::Broken),
        ClientError::NotA2a { status: 404 | 405 | 501, .. } | ClientError::Invalid { .. } => Ok(Answer::Refused),
        _ => Err(error.into()),
    }
}
