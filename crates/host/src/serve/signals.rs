//! Ctrl-C and SIGTERM: the first asks the server to stop in order, the second ends it at once. SIGHUP: the configuration
//! is read again. And the signal of a file that may not grow any more, which would end it without a word.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::serve::Reloader;

/// What a shell expects of a program that was ended by a signal.
const HUNG_UP: i32 = 129;
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// The signals that end a server.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// Somebody watches it at a terminal.
    at_terminal: bool,
}

/// What a signal asks for.
enum Asked {
    /// An end, with the exit code it stands for.
    Stop(i32),
    Reload,
}

impl Signals {
    /// Takes them over from the system, which would end the process.
    pub fn take() -> io::Result<Self> {
        // With a handler in place the write fails instead, and whoever wrote deals with it: the log goes on without the
        // line, the store refuses the append. The handler stays for as long as the process lives.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            at_terminal: is_at_terminal(),
        })
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Stop(INTERRUPTED),
            _ = self.terminate.recv() => Asked::Stop(TERMINATED),
            // A window that was closed sends the same signal, and whoever closed it expects the program to end.
            _ = self.hangup.recv() => match self.at_terminal && !is_at_terminal() {
                true => Asked::Stop(HUNG_UP),
                false => Asked::Reload,
            },
        }
    }

    /// The next one that asks for an end, as its exit code; the configuration is read again for others.
    async fn stop(&mut self, reloader: &Arc<Reloader>) -> i32 {
        loop {
            match self.next().await {
                Asked::Stop(code) => return code,
                Asked::Reload => {
                    let reloader = Arc::clone(reloader);
                    // It reads files.
                    drop(tokio::task::spawn_blocking(move || reloader.reload_and_log()));
                }
            }
        }
    }
}

/// A token that the first signal for it cancels, after `first` was told; a second signal ends the process.
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
