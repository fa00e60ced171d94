//! Calls an agent that another SDK serves:
//!
//! - `callers client BASE_URL [PART OF A NAME]…`: every operation of the client, once for each interface on its card,
//! - `callers commands BASE_URL SWITCHBOARD [PART OF A NAME]…`: the same with the commands of that program,
//! - `callers behind BASE_URL HUB_URL NAME`: the same agent behind a hub, where its names are `NAME-INTERFACE`,
//! - `callers conformance BASE_URL SWITCHBOARD TEXT [CHECK]…`: what `switchboard conformance` finds wrong meanwhile.
//!
//! Prints `ok NAME` or `not ok NAME: why`, and ends with 1 if a check failed.

#![expect(clippy::print_stdout, reason = "the results are read from standard output")]

mod behind;
mod caller;
mod checks;
mod commands;
mod conformance;
mod receiver;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use switchboard_a2a::{Version, parse_version};
use switchboard_client::{Binding, CallContext, Client, Peer, egress};

use crate::behind::Behind;
use crate::caller::Caller;
use crate::commands::switchboard::Switchboard;
use crate::run::Run;

const USAGE: &str = "usage: callers client BASE_URL [PART OF A NAME]…, \
    callers commands BASE_URL SWITCHBOARD [PART OF A NAME]…, callers behind BASE_URL HUB_URL NAME [PART OF A NAME]… or \
    callers conformance BASE_URL SWITCHBOARD TEXT [CHECK]…";

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context(USAGE);
    let (part, address) = (next()?, next()?);
    let failed = match part.as_str() {
        "client" => client(&address, &arguments.collect::<Vec<_>>()).await?,
        "commands" => {
            let program = next()?.into();
            commands(&address, program, &arguments.collect::<Vec<_>>()).await?
        }
        "behind" => {
            let (hub, agent) = (next()?, next()?);
            behind(&address, &hub, &agent, &arguments.collect::<Vec<_>>()).await?
        }
        "conformance" => {
            let switchboard = Switchboard::new(next()?.into(), &address)?;
            let text = next()?;
            conformance::run(&switchboard, &text, &arguments.collect::<Vec<_>>()).await?;
            0
        }
        _ => anyhow::bail!(USAGE),
    };
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn client(address: &str, wanted: &[String]) -> anyhow::Result<u32> {
    let mut failed = 0;
    for (binding, version) in interfaces(address).await? {
        let caller = Caller::new(address, binding, version)?;
        let mut run = Run::new(&caller.name, wanted);
        checks::run(&mut run, &caller).await;
        failed += run.failed;
    }
    Ok(failed)
}

async fn behind(address: &str, hub: &str, agent: &str, wanted: &[String]) -> anyhow::Result<u32> {
    let mut runs = Vec::new();
    for (binding, version) in interfaces(address).await? {
        let there = Caller::new(address, binding, version)?;
        let here = format!("{hub}/a2a/{agent}-{}", there.name.replace('.', "-"));
        let behind = Behind { here: Caller::new(&here, Binding::JsonRpc, Version::V1)?, there };
        runs.push(async move {
            let mut run = Run::new(&behind.there.name, wanted);
            behind::run(&mut run, &behind).await;
            run.failed
        });
    }
    Ok(futures_util::future::join_all(runs).await.into_iter().sum())
}

/// The interfaces at the same time: most of what a process does is to begin and to end.
async fn commands(address: &str, program: PathBuf, wanted: &[String]) -> anyhow::Result<u32> {
    let mut runs = Vec::new();
    for (binding, version) in interfaces(address).await? {
        let switchboard = Switchboard::new(program.clone(), address)?.pinned(binding, version);
        runs.push(async move {
            let mut run = Run::new(&name(binding, version), wanted);
            commands::run(&mut run, &switchboard).await;
            run.failed
        });
    }
    Ok(futures_util::future::join_all(runs).await.into_iter().sum())
}

/// An interface, as the names of the checks begin.
fn name(binding: Binding, version: Version) -> String {
    let carried = match binding {
        Binding::JsonRpc => "jsonrpc",
        Binding::Rest => "rest",
    };
    format!("{carried}-{}", version.as_str())
}

/// What the card offers, in its order, each once.
async fn interfaces(address: &str) -> anyhow::Result<Vec<(Binding, Version)>> {
    let client = Client::new(egress()?, Peer::new(address))?;
    let found = client.card(&CallContext::default()).await?;
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
