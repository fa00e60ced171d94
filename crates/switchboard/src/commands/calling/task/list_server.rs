//! `switchboard task list` without an agent: the caller's tasks of all agents of the server, the newest first, one a line.

use serde_json::{Value, json};
use switchboard_a2a::{Role, Task, Timestamp};
use switchboard_host::printer::Printer;

use super::list::{self, ListOptions};
use crate::cli::CallFlags;
use crate::commands::calling::{AgentCall, Failure, sanitize, target, task_output};

/// The most characters of a task's first message.
const WORDS: usize = 50;

struct ListedTask {
    agent: String,
    task: Task,
}

pub(super) async fn run(options: &ListOptions, flags: &CallFlags, printer: Printer) -> Result<(), Failure> {
    if options.page_token.is_some() {
        let next = "name the agent that the page before was of, or leave out --page-token";
        return Err(Failure::usage("a page belongs to one agent, and none is named", next));
    }
    let agents = match target::running(&target::settings(&flags.workspace)?).await? {
        Some(status) => status.agents,
        None => {
            let fleet = target::load(&flags.workspace)?;
            target::needs_server(&fleet.workspace, &flags.workspace).await?;
            fleet.agents.iter().map(|agent| agent.name.to_string()).collect()
        }
    };
    let mut tasks: Vec<ListedTask> = Vec::new();
    let (mut total, mut heard, mut failures) = (0, false, Vec::new());
    for agent in agents {
        match of_agent(&agent, options, flags, printer).await {
            Ok((count, found)) => {
                heard = true;
                total += count;
                tasks.extend(found.into_iter().map(|task| ListedTask { agent: agent.clone(), task }));
            }
            Err(failure) => failures.push((agent, failure)),
        }
    }
    if !heard && let Some((_, failure)) = failures.pop() {
        return Err(failure);
    }
    // A server elsewhere need not have all agents of this workspace; a key need not be good for all of them.
    for (agent, failure) in failures.iter().filter(|(_, failure)| !failure.is_no_agent()) {
        printer.warning(&format!("the tasks of {agent} are not listed: {}", sanitize::line(&failure.message)));
    }
    tasks.sort_by_key(|listed| std::cmp::Reverse(listed.task.status.timestamp.map(|Timestamp(time)| time)));
    if !options.all {
        tasks.truncate(usize::try_from(options.page_size).unwrap_or(usize::MAX));
    }
    print(&tasks, total, options, printer);
    Ok(())
}

/// The newest tasks of one agent, with their messages, and how many there are in all.
async fn of_agent(
    agent: &str,
    options: &ListOptions,
    flags: &CallFlags,
    printer: Printer,
) -> Result<(u64, Vec<Task>), Failure> {
    let call = AgentCall::open(agent, flags, printer).await?;
    let page = list::page(&call, options, None).await?;
    Ok((page.total_size, page.tasks))
}

fn print(tasks: &[ListedTask], total: u64, options: &ListOptions, printer: Printer) {
    if printer.is_json() {
        let tasks = tasks.iter().map(as_json);
        return match options.stream {
            true => tasks.for_each(|task| printer.json_line(&task)),
            false => printer.json(&json!({ "tasks": tasks.collect::<Vec<_>>(), "totalSize": total })),
        };
    }
    let rows = tasks.iter().map(|ListedTask { agent, task }| {
        let time = task.status.timestamp.map(|time| seconds(&time.to_string())).unwrap_or_default();
        [
            time,
            task_output::state(task.status.state),
            agent.clone(),
            sanitize::line(task.id.as_str()),
            first_words(task),
        ]
    });
    printer.titled_table(["TIME", "STATE", "AGENT", "TASK", "FIRST WORDS"], rows);
    if u64::try_from(tasks.len()).is_ok_and(|listed| listed < total) {
        printer.note(&format!("these are {} of {total}; task list AGENT goes through all of an agent", tasks.len()));
    }
}

/// The task object of the protocol with the agent's name added.
fn as_json(ListedTask { agent, task }: &ListedTask) -> Value {
    let mut value = serde_json::to_value(task).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        members.insert("agent".to_owned(), Value::from(agent.as_str()));
    }
    value
}

/// How the task began, as far as it fits on a line.
fn first_words(task: &Task) -> String {
    let asked = task.history.iter().find(|message| message.role == Role::User);
    let said = asked.or(task.status.message.as_ref()).map(|message| sanitize::line(&message.joined_text()));
    let said = said.unwrap_or_default();
    match said.char_indices().nth(WORDS) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said,
    }
}

/// A time without its fraction of a second.
fn seconds(time: &str) -> String {
    match time.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => time.to_owned(),
    }
}
