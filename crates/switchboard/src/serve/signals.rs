//! Ctrl-C and SIGTERM: the first asks the server to stop in order, the second ends it at once. And the signal of a file
//! that may not grow any more, which would end it without a word.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What a shell expects of a program that was ended by a signal.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// The signals that end a server.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes them over from the system, which would end the process.
    pub(crate) fn take() -> io::Result<Self> {
        // With a handler in place the write fails instead, and whoever wrote deals with it: the log goes on without the
        // line, the store refuses the append. The handler stays for as long as the process lives.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// The next one, as the exit code it stands for.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
        }
    }
}

/// A token that the first signal cancels, after `first` was told; a second signal ends the process.
pub(crate) fn stop_signal(mut signals: Signals, first: impl FnOnce() + Send + 'static) -> CancellationToken {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        signals.next().await;
        first();
        stopping.cancel();
        let code = signals.next().await;
        std::process::exit(code);
    });
    stop
}
