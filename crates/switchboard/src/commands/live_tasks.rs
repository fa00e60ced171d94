//! `switchboard task list --all` and `switchboard task cancel ID`: the tasks of all callers of a server, asked for at its
//! control socket. Unlike the commands that call agents they need no key, but the server's data directory.

use std::process::ExitCode;

use serde::de::DeserializeOwned;
use serde_json::json;
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::{Clock, SystemClock};
use switchboard_host::config::Workspace;
use switchboard_host::control::{BlockedBy, CanceledTask, LiveTask, LiveTaskPage, Request, TaskRequest};
use switchboard_host::printer::Printer;

use crate::cli::DataFlags;
use crate::commands::calling::task::list::ListOptions;
use crate::commands::calling::{Failure, run as run_async, sanitize, task_output};
use crate::commands::{loaded, next_step};
use crate::control_client::{self, ControlClientError};

pub(crate) fn list(options: &ListOptions, flags: &DataFlags, printer: Printer) -> Result<(), ExitCode> {
    let state = options.status.map(task_output::state);
    let is_wanted = |task: &LiveTask| {
        options.context_id.as_ref().is_none_or(|context| *context == task.context_id)
            && state.as_ref().is_none_or(|state| *state == task.state)
    };
    let workspace = loaded(flags.load(), printer)?.workspace;
    run_async(printer, async {
        let mut tasks = Vec::new();
        let mut after = 0;
        loop {
            let page: LiveTaskPage = send(&workspace, flags, TaskRequest::List { after }).await?;
            tasks.extend(page.tasks.into_iter().filter(is_wanted));
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        match (printer.is_json(), options.stream) {
            (true, true) => tasks.iter().for_each(|task| printer.json_line(task)),
            (true, false) => printer.json(&json!({ "tasks": tasks })),
            (false, _) if !tasks.is_empty() => print(&tasks, flags, printer),
            (false, _) if options.context_id.is_none() && state.is_none() => printer.line("there are no live tasks"),
            (false, _) => printer.line("no live task is like that"),
        }
        Ok(())
    })
}

pub(crate) fn cancel(flags: &DataFlags, id: String, printer: Printer) -> Result<(), ExitCode> {
    let workspace = loaded(flags.load(), printer)?.workspace;
    run_async(printer, async {
        let canceled: CanceledTask = send(&workspace, flags, TaskRequest::Cancel { id }).await?;
        match printer.is_json() {
            true => printer.json(&canceled),
            false => printer.line(format!("task: {}\nstate: {}", canceled.id, canceled.state)),
        }
        Ok(())
    })
}

async fn send<T: DeserializeOwned>(
    workspace: &Workspace,
    flags: &DataFlags,
    request: TaskRequest,
) -> Result<T, Failure> {
    let sent = control_client::request(workspace, Request::Tasks(request)).await;
    sent.map(|(reply, _)| reply).map_err(|error| match error {
        ControlClientError::Refused(refusal) => {
            Failure::by_server(&refusal.code, refusal.problem, flags.in_commands(&refusal.next))
        }
        ControlClientError::NoServer(refusal) => {
            Failure::by_server("", refusal.problem, format!("switchboard serve{} starts one", flags.again()))
        }
        error => Failure::by_server("", error.to_string(), flags.in_commands(&next_step(&error))),
    })
}

fn print(tasks: &[LiveTask], flags: &DataFlags, printer: Printer) {
    let now = SystemClock.now();
    let heading = ["TASK", "AGENT", "CALLER", "STATE", "AGE", "BLOCKED BY", "TEXT"];
    printer.titled_table(heading, tasks.iter().map(|task| row(task, now)));
    let mut printed: Vec<&str> = Vec::new();
    for BlockedBy { blocker, caller } in tasks.iter().filter_map(|task| task.blocked_by.as_ref()) {
        let Some(id) = blocker.task_id.as_ref().filter(|id| !printed.contains(&id.as_str())) else { continue };
        printed.push(id.as_str());
        if let Some(answer) = &blocker.answer {
            let answer = flags.in_commands(answer);
            printer.line(format!("{id} asks its caller {caller}, who answers with: {answer}"));
        }
        printer.line(format!("{id} is stopped with: switchboard task cancel{} {id}", flags.again()));
    }
}

fn row(task: &LiveTask, now: Timestamp) -> [String; 7] {
    let blocked_by = task.blocked_by.as_ref().map_or_else(String::new, |BlockedBy { blocker, .. }| {
        let id = blocker.task_id.as_ref().map(ToString::to_string).unwrap_or_default();
        let (since, doing) = blocker.asks_since.map_or((blocker.since, ""), |since| (since, "asks for "));
        format!("{id} ({}, {doing}{})", blocker.agent, age(now, since))
    });
    let state = match task.queue_position {
        Some(position) => format!("{} (queued, {position})", task.state),
        None => task.state.clone(),
    };
    [
        task.id.clone(),
        task.agent.clone(),
        task.caller.clone(),
        state,
        age(now, task.received_at.unwrap_or(task.since)),
        if blocked_by.is_empty() { "-".to_owned() } else { blocked_by },
        sanitize::line(&task.text),
    ]
}

/// A time that has passed, in its largest unit.
fn age(now: Timestamp, since: Timestamp) -> String {
    let seconds = (now.0 - since.0).max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_shown_in_their_largest_unit() {
        let shown = |seconds: i64| age(Timestamp(seconds * 1_000), Timestamp(0));
        assert_eq!([0, 59, 60, 3_599, 3_600, 86_399, 86_400].map(shown), ["0s", "59s", "1m", "59m", "1h", "23h", "1d"]);
        assert_eq!(age(Timestamp(0), Timestamp(9_000)), "0s", "a clock that was put back");
    }
}
