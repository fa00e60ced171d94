//! What can be typed after `switchboard task`.

use std::process::ExitCode;

use clap::Subcommand;
use switchboard_host::printer::Printer;

use crate::cli::AgentWord;
use crate::commands::calling::task::{self, push_config};
use crate::commands::calling::{Call, NoOptions};

const GET: &str = with_exit_codes!(
    "Examples:",
    "  switchboard task get echo ID                          what it has produced, and its state",
    "  switchboard task get planner ID --wait                once it has ended or asks something",
    "  switchboard task get planner ID --wait --fail         exits with 1 unless it completes",
    "  switchboard task get planner ID --history 10          with the messages so far"
);

const LIST: &str = with_exit_codes!(
    "Without an agent, the tasks of all agents of the server: when they changed last, their state and how they began.",
    "",
    "Examples:",
    "  switchboard task list                                 yours, of all agents of the server",
    "  switchboard task list planner --status working",
    "  switchboard task list planner --all -o json --stream  every task as a line of JSON",
    "  switchboard task list --all                           live tasks of all callers of the server here"
);

const CANCEL: &str = with_exit_codes!(
    "Without an agent the server here is asked, at its control socket: it stops any caller's task.",
    "",
    "A task that has ended cannot be stopped any more; that is an error. One that was canceled before is shown as it is, unless the agent makes an error of it."
);

const SUBSCRIBE: &str = with_exit_codes!(
    "What the task has produced so far comes first, then what it produces. One that has ended is shown as it is.",
    "",
    "Examples:",
    "  switchboard task subscribe planner ID",
    "  switchboard task subscribe planner ID --stream -o json        every event as a line of JSON"
);

const DOWNLOAD: &str = with_exit_codes!("Examples:", "  switchboard task download painter ID --out pictures");

const PUSH: &str = with_exit_codes!(
    "A webhook is an address of yours that the agent calls with every change of a task, so that no client has to wait for it.",
    "The protocol calls it a push notification configuration.",
    "",
    "Example:",
    "  switchboard task push-config set planner ID --url https://hooks.example/in"
);

#[derive(Debug, Subcommand)]
pub(super) enum TaskCommand {
    /// Show a task (what became of a message): where it stands and what it has produced
    #[command(override_usage = "switchboard task get [OPTIONS] AGENT ID", after_help = GET)]
    Get(Call<TaskWords, task::get::GetOptions>),
    /// List tasks, the newest first
    #[command(override_usage = "switchboard task list [OPTIONS] [AGENT]", after_help = LIST)]
    List(Call<AgentWord, task::list::ListOptions>),
    /// Stop a task
    #[command(override_usage = "switchboard task cancel [OPTIONS] [AGENT] ID", after_help = CANCEL)]
    Cancel(Call<TaskWords, task::cancel::CancelOptions>),
    /// Watch a task until it ends or waits for you
    #[command(override_usage = "switchboard task subscribe [OPTIONS] AGENT ID", after_help = SUBSCRIBE)]
    Subscribe(Call<TaskWords, task::subscribe::SubscribeOptions>),
    /// Save the files that a task has produced
    #[command(override_usage = "switchboard task download [OPTIONS] AGENT ID", after_help = DOWNLOAD)]
    Download(Call<TaskWords, task::download::DownloadOptions>),
    /// Say where the agent shall report a task's changes (webhooks)
    #[command(subcommand)]
    PushConfig(PushConfigCommand),
}

#[derive(Debug, Subcommand)]
pub(super) enum PushConfigCommand {
    /// Have the agent report a task's changes to an address of yours
    #[command(override_usage = "switchboard task push-config set [OPTIONS] --url URL AGENT ID", after_help = PUSH)]
    Set(Call<TaskWords, push_config::PushConfigOptions>),
    /// Show one webhook of a task
    #[command(override_usage = "switchboard task push-config get [OPTIONS] AGENT ID WEBHOOK", after_help = PUSH)]
    Get(Call<WebhookWords, NoOptions>),
    /// List the webhooks of a task
    #[command(override_usage = "switchboard task push-config list [OPTIONS] AGENT ID", after_help = PUSH)]
    List(Call<TaskWords, NoOptions>),
    /// Remove a webhook of a task
    #[command(override_usage = "switchboard task push-config delete [OPTIONS] AGENT ID WEBHOOK", after_help = PUSH)]
    Delete(Call<WebhookWords, NoOptions>),
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TaskWords {
    #[command(flatten)]
    agent: AgentWord,
    /// Id of the task, as send and task list show it
    id: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub(super) struct WebhookWords {
    #[command(flatten)]
    task: TaskWords,
    /// Id of the webhook, as the list shows it
    webhook: Option<String>,
}

impl From<TaskWords> for Vec<String> {
    fn from(words: TaskWords) -> Self {
        [words.agent.agent, words.id].into_iter().flatten().collect()
    }
}

impl From<WebhookWords> for Vec<String> {
    fn from(words: WebhookWords) -> Self {
        Self::from(words.task).into_iter().chain(words.webhook).collect()
    }
}

/// What the words after the agent are called.
const ID: &str = "the id of the task";
const WEBHOOK: &str = "the id of the webhook";

impl TaskCommand {
    pub(super) fn run(self, printer: Printer) -> Result<(), ExitCode> {
        match self {
            Self::Get(call) => call.open([ID], printer, task::get::run),
            Self::List(call) => task::list::run(call, printer),
            Self::Cancel(call) => task::cancel::run(call, printer),
            Self::Subscribe(call) => call.open([ID], printer, task::subscribe::run),
            Self::Download(call) => call.open([ID], printer, task::download::run),
            Self::PushConfig(PushConfigCommand::Set(call)) => call.open([ID], printer, push_config::set),
            Self::PushConfig(PushConfigCommand::Get(call)) => call.open([ID, WEBHOOK], printer, push_config::get),
            Self::PushConfig(PushConfigCommand::List(call)) => call.open([ID], printer, push_config::list),
            Self::PushConfig(PushConfigCommand::Delete(call)) => call.open([ID, WEBHOOK], printer, push_config::delete),
        }
    }
}
