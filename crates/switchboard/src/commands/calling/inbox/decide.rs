//! `switchboard inbox approve`, `reject`, `modify` and `answer`: decide a question.

use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};
use switchboard_host::printer::Printer;

use super::failed;
use crate::cli::HubFlags;
use crate::commands::calling::hub_client::HubClient;
use crate::commands::calling::{run as run_async, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ApproveOptions {
    /// Id of the question, as the list shows it
    id: String,

    /// Why, for the agent and the log
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,

    /// One of the options that the question offers
    #[arg(long, value_name = "ID")]
    option: Option<String>,

    /// For the rest of the task; approvals of coding agents take it
    #[arg(long, conflicts_with = "option")]
    always: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RejectOptions {
    /// Id of the question, as the list shows it
    id: String,

    /// Why, for the agent and the log
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,

    /// One of the options that the question offers
    #[arg(long, value_name = "ID")]
    option: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ModifyOptions {
    /// Id of the question, as the list shows it
    id: String,

    /// What to do instead
    #[arg(long, value_name = "TEXT")]
    text: String,

    /// Why, for the agent and the log
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AnswerOptions {
    /// Id of the question, as the list shows it
    id: String,

    /// The answer
    #[arg(long, value_name = "TEXT", required_unless_present = "option")]
    text: Option<String>,

    /// One of the options that the question offers
    #[arg(long, value_name = "ID")]
    option: Option<String>,

    /// Why, for the agent and the log
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
}

pub(crate) fn approve(flags: &HubFlags, options: &ApproveOptions, printer: Printer) -> Result<(), ExitCode> {
    let ApproveOptions { id, feedback, option, always } = options;
    let mut decision = json!({ "decision": "approve", "feedback": feedback, "option": option });
    if *always {
        decision["always"] = true.into();
    }
    run(flags, id, decision, printer)
}

pub(crate) fn reject(flags: &HubFlags, options: &RejectOptions, printer: Printer) -> Result<(), ExitCode> {
    let RejectOptions { id, feedback, option } = options;
    run(flags, id, json!({ "decision": "reject", "feedback": feedback, "option": option }), printer)
}

pub(crate) fn modify(flags: &HubFlags, options: &ModifyOptions, printer: Printer) -> Result<(), ExitCode> {
    let ModifyOptions { id, text, feedback } = options;
    run(flags, id, json!({ "decision": "modify", "feedback": feedback, "text": text }), printer)
}

pub(crate) fn answer(flags: &HubFlags, options: &AnswerOptions, printer: Printer) -> Result<(), ExitCode> {
    let AnswerOptions { id, text, option, feedback } = options;
    run(flags, id, json!({ "decision": "answer", "feedback": feedback, "option": option, "text": text }), printer)
}

fn run(flags: &HubFlags, id: &str, decision: Value, printer: Printer) -> Result<(), ExitCode> {
    run_async(printer, async {
        let hub = HubClient::open(flags).await?;
        let url = hub.url(&["api", "inbox", &format!("{id}:decide")]);
        match hub.call(Method::POST, url, Some(&decision)).await {
            Ok(decided) if printer.is_json() => printer.json(&decided),
            Ok(decided) => {
                let task = sanitize::line(decided["taskId"].as_str().unwrap_or_default());
                // A rejected command lets its task go on, and a rejected gate ends it.
                let then = if decision["decision"] == "reject" { "was told" } else { "goes on" };
                printer.line(format!("decided; task {task} {then}"));
            }
            Err(error) => return Err(failed(&hub, id, error)),
        }
        Ok(())
    })
}
