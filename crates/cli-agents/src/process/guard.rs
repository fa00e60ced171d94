//! The guard: a watchdog process that kills the orphans of a server that was killed.
//!
//! The kernel kills a server's children with it, but not theirs: npm's Codex is a script that starts the real program.
//! So the guard waits for the end of a pipe whose other end only the server has, and which closes however the server
//! dies. Then it kills the process trees of that server's runs. Only if server and guard are killed together is this
//! left to the next server, which finds the orphans in the ledger.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tracing::warn;

use super::ledger::{self, Ledger};
use super::orphans;
use super::process_table::{self, ProcessIdentity};
use super::process_tree::Marker;

/// The word behind the helper's own that makes it a guard.
pub const GUARD: &str = "guard";

/// A server's guard, as the server has it.
pub(super) struct Guard {
    /// Program and arguments that become a guard.
    command: Vec<OsString>,
    process: Option<Child>,
    /// Its identity, so that the reaper does not take it for an orphan.
    identity: Arc<Mutex<Option<ProcessIdentity>>>,
}

impl Guard {
    pub(super) fn new(
        helper: &[OsString],
        ledger: &Ledger,
        grace: Duration,
        identity: Arc<Mutex<Option<ProcessIdentity>>>,
    ) -> Self {
        let mut command = helper.to_vec();
        command.extend([GUARD.into(), ledger.folder().into(), ledger.markers().into()]);
        command.push(grace.as_millis().to_string().into());
        Self { command, process: None, identity }
    }

    /// Starts the guard unless it runs. If it cannot be started, only the ledger is left.
    pub(super) fn ensure(&mut self) {
        if self.process.as_mut().is_some_and(|process| matches!(process.try_wait(), Ok(None))) {
            return;
        }
        match self.start() {
            Ok(process) => {
                let pid = process.id().cast_signed();
                *self.identity.lock() = process_table::start(pid).map(|start| ProcessIdentity { pid, start });
                self.process = Some(process);
            }
            Err(error) => warn!(%error, "programs would outlive a killed server: its guard could not be started"),
        }
    }

    fn start(&self) -> io::Result<Child> {
        let mut words = self.command.iter();
        let mut command = Command::new(words.next().cloned().unwrap_or_default());
        command.args(words).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }
}

impl Drop for Guard {
    /// Graceful shutdown: no orphan is left to kill.
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The main function of the guard process. Returns once the server's orphans are killed; none for wrong arguments.
pub fn guard(mut words: impl Iterator<Item = OsString>) -> Option<io::Result<()>> {
    let (folder, markers) = (words.next()?, words.next()?.into_string().ok()?);
    let grace = Duration::from_millis(words.next()?.to_str()?.parse().ok()?);
    if words.next().is_some() {
        return None;
    }
    let mut nothing = [0; 64];
    // The server never writes, so this returns when the server has died; a signal in between is no end.
    loop {
        match io::stdin().lock().read(&mut nothing) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Whether the server has died cannot be known any more: the next server reads the ledger.
            Err(error) => return Some(Err(error)),
        }
    }
    let roots = ledger::roots(Path::new(&folder), &markers);
    Some(orphans::end_those(roots, vec![Marker::All(markers)], grace).map(drop))
}
