//! One server of the test: the hub, or one behind it. It is killed and comes back where it was, so that the others need not
//! be told.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::hub::foreign::{Foreign, Process};
use crate::server::{Server, ServerSetup, folder};

/// Below those that the system gives out by itself, from 32768 on.
const PORTS: Range<u16> = 20_000..32_768;

/// A server that may be away for a moment.
pub(super) struct Node {
    program: Program,
    running: Option<Running>,
    pub(super) address: SocketAddr,
}

enum Program {
    Switchboard(ServerSetup),
    Foreign(Foreign),
}

/// Dropping either kills it.
enum Running {
    Server(Server),
    Process(Process),
}

impl Node {
    /// A Switchboard with a folder of its own, where its settings are written.
    pub(super) fn switchboard(binary: &Path, scratch: &Path, name: &str) -> anyhow::Result<Self> {
        let address = free_address()?;
        let workspace = folder(scratch, name)?;
        let log = log(scratch, name);
        let setup = ServerSetup { binary: binary.to_owned(), workspace, durability: "process", log, bind: address };
        Ok(Self { program: Program::Switchboard(setup), running: None, address })
    }

    /// A server of another SDK, all of whose tasks are in its memory.
    pub(super) fn foreign(foreign: Foreign) -> anyhow::Result<Self> {
        Ok(Self { program: Program::Foreign(foreign), running: None, address: free_address()? })
    }

    /// Writes a file that the server reads when it starts.
    pub(super) fn configure(&self, file: &str, content: &str) -> anyhow::Result<()> {
        let Program::Switchboard(setup) = &self.program else {
            anyhow::bail!("a server of another SDK reads no {file}");
        };
        std::fs::write(setup.workspace.join(file), content).with_context(|| format!("cannot write {file}"))
    }

    pub(super) fn start(&mut self) -> anyhow::Result<()> {
        let started = match &self.program {
            Program::Switchboard(setup) => setup.start().map(Running::Server),
            Program::Foreign(foreign) => foreign.start(self.address.port()).map(Running::Process),
        };
        self.running = Some(started.context("no restart after the kill")?);
        Ok(())
    }

    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        match self.running.take() {
            Some(Running::Server(server)) => server.kill(),
            Some(Running::Process(process)) => process.kill(),
            None => Ok(()),
        }
    }

    /// The process of now.
    pub(super) fn pid(&self) -> Option<u32> {
        match &self.running {
            Some(Running::Server(server)) => Some(server.pid()),
            Some(Running::Process(process)) => Some(process.pid()),
            None => None,
        }
    }

    /// What `switchboard db check` says of a server that is down, if it finds something wrong.
    pub(super) fn check(&self) -> anyhow::Result<Option<String>> {
        let Program::Switchboard(setup) = &self.program else { return Ok(None) };
        let said = setup.check()?;
        Ok(said.map(|said| format!("switchboard db check of {}: {said}", setup.workspace.display())))
    }
}

/// It comes back where it was, so its port must be known before, and nobody else may get it while the server is down: it is
/// none of those that the system gives to connections. A server that cannot have it says so.
fn free_address() -> anyhow::Result<SocketAddr> {
    // Others look for ports at the same time, so each begins elsewhere.
    let first = RandomState::new().hash_one(std::process::id()) % PORTS.len() as u64;
    let ports = PORTS.cycle().skip(usize::try_from(first)?).take(PORTS.len());
    let mut addresses = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let free = addresses.find(|address| TcpListener::bind(address).is_ok());
    free.with_context(|| format!("no port of {PORTS:?} is free"))
}

/// Where a server's own log goes.
pub(super) fn log(scratch: &Path, name: &str) -> PathBuf {
    scratch.join(format!("{name}.log"))
}
