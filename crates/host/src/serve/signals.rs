//! Signals: the first Ctrl-C or SIGTERM starts a graceful shutdown, the second ends the process. SIGHUP reloads the
//! configuration. SIGXFSZ (file size limit) is caught, because its default would end the process without a log line.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::serve::Reloader;

/// Exit codes after a signal: 128 and its number.
const HUNG_UP: i32 = 129;
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// The signals that end a server.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// Whether the server was started at a terminal.
    at_terminal: bool,
}

/// What to do on a signal.
enum SignalAction {
    /// Stop, with this exit code.
    Stop(i32),
    Reload,
}

impl Signals {
    /// Installs the handlers.
    pub fn take() -> io::Result<Self> {
        // With a handler installed the write fails instead: the log loses the line, the store refuses the append. The
        // handler outlives the stream that is dropped here.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            at_terminal: is_at_terminal(),
        })
    }

    async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.interrupt.recv() => SignalAction::Stop(INTERRUPTED),
            _ = self.terminate.recv() => SignalAction::Stop(TERMINATED),
            // A closed terminal window sends SIGHUP too, and there the program is expected to end.
            _ = self.hangup.recv() => match self.at_terminal && !is_at_terminal() {
                true => SignalAction::Stop(HUNG_UP),
                false => SignalAction::Reload,
            },
        }
    }

    /// Waits for the next stop signal and returns its exit code; reloads the configuration on SIGHUP.
    async fn stop(&mut self, reloader: &Arc<Reloader>) -> i32 {
        loop {
            match self.next().await {
                SignalAction::Stop(code) => return code,
                SignalAction::Reload => {
                    let reloader = Arc::clone(reloader);
                    // It reads files.
                    drop(tokio::task::spawn_blocking(move || reloader.reload_and_log()));
                }
            }
        }
    }
}

/// A token that the first stop signal cancels, after calling `first`; a second one ends the process.
pub fn stop_signal(
    mut signals: Signals,
    reloader: Arc<Reloader>,
    first: impl FnOnce() + Send + 'static,
) -> CancellationToken {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        signals.stop(&reloader).await;
        first();
        stopping.cancel();
        let code = signals.stop(&reloader).await;
        std::process::exit(code);
    });
    stop
}

fn is_at_terminal() -> bool {
    io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal()
}
