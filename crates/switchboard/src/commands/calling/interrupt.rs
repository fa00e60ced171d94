//! Ctrl-C during a call. The task goes on at the agent, so this offers to cancel it, or prints how to find it again.

use std::io::{BufRead, IsTerminal};

use switchboard_a2a::Task;
use switchboard_host::printer::Printer;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::commands::calling::{AgentCall, sanitize, task_output};

/// The exit code of shells for a program that ended by Ctrl-C.
pub(in crate::commands) const INTERRUPTED: u8 = 130;

/// Catches Ctrl-C from its creation on.
pub(super) struct Interrupt(Option<Signal>);

impl Interrupt {
    pub(super) fn new() -> Self {
        // Without a handler Ctrl-C ends the program as usual.
        Self(signal(SignalKind::interrupt()).ok())
    }

    pub(super) async fn pressed(&mut self) {
        match &mut self.0 {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    }

    /// Cancels the task if the user wants it, or prints how to go on with it.
    pub(super) async fn settle(&mut self, call: &AgentCall<'_>, task: Option<&Task>, printer: Printer) {
        let Some(task) = task.filter(|task| !task.status.state.is_terminal()) else {
            return printer.note("stopped; the agent may have got the message");
        };
        let id = sanitize::shell_word(task.id.as_str());
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && self.wants_cancel(printer).await {
            let canceled = tokio::select! {
                canceled = call.ask(call.client.cancel(&call.context, &task.id, None)) => canceled,
                () = self.pressed() => return,
            };
            return match canceled {
                Ok(task) => task_output::fields(&task).iter().for_each(|field| printer.note(field)),
                Err(failure) => drop(failure.print(printer)),
            };
        }
        printer.note(&format!("task {id} goes on without us"));
        printer.note(&format!("next: {}", call.command("task get", &format!("--wait {id}"))));
        printer.note(&format!("or stop it: {}", call.command("task cancel", &id)));
    }

    async fn wants_cancel(&mut self, printer: Printer) -> bool {
        printer.draw("\ncancel the task at the agent? [y/N] ");
        tokio::select! {
            line = read_line() => matches!(line, Ok(Some(line)) if matches!(line.trim(), "y" | "Y" | "yes")),
            // A second Ctrl-C leaves without canceling.
            () = self.pressed() => {
                printer.note("");
                false
            }
        }
    }
}

/// A line of standard input; none at its end.
pub(super) async fn read_line() -> std::io::Result<Option<String>> {
    let read = tokio::task::spawn_blocking(|| {
        let mut line = Vec::new();
        match std::io::stdin().lock().read_until(b'\n', &mut line)? {
            0 => Ok(None),
            _ => String::from_utf8(line).map(Some).map_err(|_| std::io::Error::other("it is not text (UTF-8)")),
        }
    });
    read.await.map_err(std::io::Error::from).flatten()
}
