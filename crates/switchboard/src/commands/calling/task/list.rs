//! `switchboard task list`: the tasks of an agent, one page or all of them.

use std::process::ExitCode;

use serde_json::json;
use switchboard_a2a::{ContextId, ListRequest, ListResponse, TaskState};
use switchboard_host::printer::Printer;

use super::list_server;
use crate::cli::AgentWord;
use crate::commands::calling::task_output::TaskPrinter;
use crate::commands::calling::{AgentCall, Call, Failure, run as run_async, sanitize, task_output};
use crate::commands::live_tasks;

const PAGE: u32 = 20;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ListOptions {
    /// Only tasks of this conversation (context)
    #[arg(long, value_name = "ID", env = "A2ACLI_CONTEXT_ID", hide_env_values = true)]
    pub(crate) context_id: Option<String>,

    /// Only tasks in this state, such as working or input-required
    #[arg(long, value_name = "STATE", value_parser = state)]
    pub(crate) status: Option<TaskState>,

    /// Show at most so many at once
    #[arg(long, visible_alias = "limit", value_name = "COUNT", default_value_t = PAGE,
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) page_size: u32,

    /// Begin where the page before ended, which said how
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    pub(super) page_token: Option<String>,

    /// Show all pages; without an agent, the live tasks of all callers of the server here, and what blocks them
    #[arg(long, conflicts_with = "page_token")]
    pub(super) all: bool,

    /// With -o json one task a line
    #[arg(long)]
    pub(crate) stream: bool,
}

/// Without an agent the server of the workspace is asked: for the caller's tasks, or for all that are live.
pub(crate) fn run(call: Call<AgentWord, ListOptions>, printer: Printer) -> Result<(), ExitCode> {
    let Call { words, options, flags } = &call;
    match words.agent.is_none() && flags.agent_card.is_none() {
        true if options.all => live_tasks::list(options, &flags.workspace, printer),
        true => run_async(printer, list_server::run(options, flags, printer)),
        false => call.open([], printer, list),
    }
}

async fn list(call: AgentCall<'_>, []: [String; 0], options: ListOptions) -> Result<(), Failure> {
    let page = page(&call, &options, Some(0)).await?;
    print(&call, &page, &options, call.printer);
    Ok(())
}

/// The requested tasks of an agent, each with at most `history` of its messages.
pub(super) async fn page(
    call: &AgentCall<'_>,
    options: &ListOptions,
    history: Option<u32>,
) -> Result<ListResponse, Failure> {
    match options.all {
        true => all_pages(call, options, history).await,
        false => call.ask(call.client.list(&call.context, request(options, options.page_token.clone(), history))).await,
    }
}

fn request(options: &ListOptions, page_token: Option<String>, history_length: Option<u32>) -> ListRequest {
    ListRequest {
        context_id: options.context_id.as_deref().map(ContextId::from),
        status: options.status,
        page_size: Some(options.page_size),
        page_token,
        history_length,
        status_timestamp_after: None,
        include_artifacts: false,
        tenant: None,
    }
}

async fn all_pages(call: &AgentCall<'_>, options: &ListOptions, history: Option<u32>) -> Result<ListResponse, Failure> {
    let mut all: Option<ListResponse> = None;
    let mut token = None;
    loop {
        let page = call.ask(call.client.list(&call.context, request(options, token.clone(), history))).await?;
        // A server that gives the same page again and again, or pages without anything on them, would never end.
        let is_last =
            page.next_page_token.is_empty() || page.tasks.is_empty() || token.as_ref() == Some(&page.next_page_token);
        token = Some(page.next_page_token.clone());
        let whole = match all {
            None => page,
            Some(mut whole) => {
                whole.tasks.extend(page.tasks);
                whole
            }
        };
        if is_last {
            return Ok(ListResponse { next_page_token: String::new(), ..whole });
        }
        all = Some(whole);
    }
}

fn print(call: &AgentCall<'_>, page: &ListResponse, options: &ListOptions, printer: Printer) {
    let ListResponse { tasks, next_page_token, page_size, total_size } = page;
    match (printer.is_json(), options.stream) {
        (true, true) => tasks.iter().for_each(|task| printer.json_line(task)),
        (true, false) => printer.json(&json!({
            "tasks": tasks, "nextPageToken": next_page_token, "pageSize": page_size, "totalSize": total_size,
        })),
        (false, _) => {
            let page = TaskPrinter { printer, is_verbose: false };
            for task in tasks {
                page.ids(task);
                if let Some(timestamp) = task.status.timestamp {
                    page.field("since", &timestamp.to_string());
                }
                printer.line("");
            }
            page.field("total", &total_size.to_string());
        }
    }
    if !next_page_token.is_empty() && !printer.is_json() {
        let more = format!("{}--page-token {}", filters(options), sanitize::shell_word(next_page_token));
        printer.note(&format!("next: {}", call.command("task list", &more)));
    }
}

/// The filters as flags for the next command, because a page token is valid only with the same filters.
fn filters(options: &ListOptions) -> String {
    let mut filters = String::new();
    if let Some(context_id) = &options.context_id {
        filters.push_str(&format!("--context-id {} ", sanitize::shell_word(context_id)));
    }
    if let Some(status) = options.status {
        filters.push_str(&format!("--status {} ", task_output::state(status)));
    }
    if options.page_size != PAGE {
        filters.push_str(&format!("--page-size {} ", options.page_size));
    }
    filters
}

fn state(text: &str) -> Result<TaskState, String> {
    TaskState::from_wire(text).ok_or_else(|| {
        "write submitted, working, completed, failed, canceled, rejected, input-required or auth-required".to_owned()
    })
}
