//! `switchboard dispatch`: sends a message to the agent that routing picks, or to several.

use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};
use switchboard_a2a::{Message, SendResponse, Task, TaskState};
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::printer::Printer;

use super::follow::{DECIDED_BY_OPERATORS, waits_for_operator};
use super::hub_client::HubClient;
use super::message::MetadataFlag;
use super::parts::PartFlags;
use super::task_output::{TaskPrinter, WrittenOutput};
use super::{Failure, run as run_async, sanitize};
use crate::cli::{HubFlags, scalar};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DispatchOptions {
    /// What to say; - reads it from standard input
    text: Vec<String>,

    /// Skill that is wanted, by its id
    #[arg(long, value_name = "ID")]
    skill: Option<String>,

    /// Agent that is to serve it, or all; can be repeated
    #[arg(long = "target", value_name = "NAME", value_delimiter = ',')]
    targets: Vec<String>,

    /// How many of several agents have to complete it: all, first, quorum, quorum:N, or failover for one after the other
    #[arg(long, value_name = "POLICY")]
    fanout: Option<String>,

    /// Send it to the targets even if they do not have the skill
    #[arg(long)]
    force: bool,

    /// Conversation that it belongs to
    #[arg(long, value_name = "ID", env = "A2ACLI_CONTEXT_ID", hide_env_values = true)]
    context_id: Option<String>,

    /// Task that it goes on with, or answers
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,

    /// Time to wait for the task to end or to ask, such as 5m, ten minutes at most; 0s does not wait
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = scalar::<TimeSpan>)]
    wait: TimeSpan,

    /// Exit with 1 unless the task completes
    #[arg(long)]
    fail: bool,

    #[command(flatten)]
    parts: PartFlags,

    #[command(flatten)]
    metadata: MetadataFlag,
}

pub(crate) fn run(flags: &HubFlags, options: &DispatchOptions, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let body = body(options)?;
        let hub = HubClient::open(flags).await?.waiting(options.wait.duration());
        let answer = hub.call(Method::POST, hub.url(&["api", "dispatch"]), Some(&body)).await;
        let next = format!("{} shows the agents and their skills", hub.command("agents list", ""));
        let answer = answer.map_err(|error| {
            let is_name = error.is_code("NOT_FOUND") || error.is_code("INVALID");
            error.failure_with(&hub, if is_name { &next } else { "" })
        })?;
        print(&hub, answer, options, printer)
    })
}

fn body(options: &DispatchOptions) -> Result<Value, Failure> {
    let mut body = json!({ "parts": options.parts.parts(&options.text)? });
    let texts = [("skill", &options.skill), ("fanout", &options.fanout)];
    let ids = [("contextId", &options.context_id), ("taskId", &options.task_id)];
    for (name, value) in texts.into_iter().chain(ids) {
        if let Some(value) = value {
            body[name] = value.as_str().into();
        }
    }
    match options.targets.as_slice() {
        [] => {}
        [all] if all == "all" => body["targets"] = "all".into(),
        targets => body["targets"] = json!(targets),
    }
    if options.force {
        body["force"] = true.into();
    }
    let metadata = options.metadata.read()?;
    if !metadata.is_empty() {
        body["metadata"] = json!(metadata);
    }
    if options.wait != TimeSpan::ZERO {
        body["wait"] = options.wait.to_string().into();
    }
    Ok(body)
}

fn print(hub: &HubClient, answer: Value, options: &DispatchOptions, printer: Printer) -> Result<(), Failure> {
    if printer.is_json() {
        printer.json(&answer);
    }
    let root = sanitize::shell_word(hub.url(&["a2a"]).as_str());
    if let Some(task) = answer["taskId"].as_str() {
        if !printer.is_json() {
            let output = TaskPrinter { printer, is_verbose: false };
            output.field("task", task);
            output.field("context", answer["contextId"].as_str().unwrap_or_default());
        }
        printer.note(&format!("next: switchboard task get {root} {} --wait", sanitize::shell_word(task)));
        return if options.fail && options.wait != TimeSpan::ZERO {
            Err(Failure::silent(super::failure::FAILED))
        } else {
            Ok(())
        };
    }
    let response =
        read(answer).ok_or_else(|| Failure::internal("the server's answer is neither a task nor a message"))?;
    if !printer.is_json() {
        TaskPrinter { printer, is_verbose: false }.response(&response, &WrittenOutput::default());
        if let Some(decision) = response.task().and_then(routing) {
            printer.note(&decision);
        }
    }
    after(hub, &response, printer);
    super::follow::exit(&response, options.fail)
}

fn read(mut answer: Value) -> Option<SendResponse> {
    match answer.get_mut("message") {
        Some(message) => serde_json::from_value::<Message>(message.take()).ok().map(SendResponse::Message),
        None => serde_json::from_value::<Task>(answer).ok().map(SendResponse::Task),
    }
}

/// Who got it and why, if routing had to decide.
fn routing(task: &Task) -> Option<String> {
    let decision: Value = task.metadata.as_ref()?.get("switchboard/routing")?.read().ok()?;
    let agents = match decision["targets"].as_array() {
        Some(targets) => targets.iter().filter_map(Value::as_str).map(sanitize::line).collect::<Vec<_>>().join(", "),
        None => sanitize::line(decision["agent"].as_str()?),
    };
    Some(format!("routed to {agents} by {}", sanitize::line(decision["by"].as_str()?)))
}

/// Says what is to be done about a task that has not completed.
fn after(hub: &HubClient, response: &SendResponse, printer: Printer) {
    let Some(task) = response.task() else { return };
    let id = sanitize::shell_word(task.id.as_str());
    match task.status.state {
        TaskState::Failed => printer.warning("the task has failed"),
        TaskState::Rejected => printer.warning("the agent has refused the task"),
        TaskState::Canceled => printer.warning("the task was canceled"),
        TaskState::InputRequired => {
            printer.warning("the agent asks and waits for an answer");
            printer.note(&format!("next: {}", hub.command("dispatch", &format!("--task-id {id} 'your answer'"))));
        }
        TaskState::AuthRequired if waits_for_operator(task) => printer.warning(DECIDED_BY_OPERATORS),
        TaskState::AuthRequired => printer.warning("the agent waits until you have given it access; then it goes on"),
        _ => {}
    }
}
