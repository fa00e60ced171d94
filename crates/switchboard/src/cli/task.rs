//! What can be typed after `switchboard task`.

use std::process::ExitCode;

use clap::Subcommand;
use switchboard_host::printer::Printer;

use crate::cli::CallFlags;
use crate::commands::calling::task;

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
    "A webhook is an address of yours that the agent calls with every change of a task, so that nobody has to wait for it.",
    "The protocol calls it a push notification configuration.",
    "",
    "Example:",
    "  switchboard task push-config set planner ID --url https://hooks.example/in"
);

#[derive(Debug, Subcommand)]
pub(super) enum TaskCommand {
    /// Show a task (what became of a message): where it stands and what it has produced
    #[command(override_usage = "switchboard task get [OPTIONS] AGENT ID", after_help = GET)]
    Get {
        #[command(flatten)]
        words: TaskWords,
        #[command(flatten)]
        options: task::get::GetOptions,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// List tasks, the newest first
    #[command(override_usage = "switchboard task list [OPTIONS] [AGENT]", after_help = LIST)]
    List {
        /// The agent: a URL, a file with its card, or a name of the workspace
        agent: Option<String>,
        #[command(flatten)]
        options: task::list::ListOptions,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// Stop a task
    #[command(override_usage = "switchboard task cancel [OPTIONS] [AGENT] ID", after_help = CANCEL)]
    Cancel {
        #[command(flatten)]
        words: TaskWords,
        #[command(flatten)]
        options: task::cancel::CancelOptions,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// Watch a task until it ends or waits for you
    #[command(override_usage = "switchboard task subscribe [OPTIONS] AGENT ID", after_help = SUBSCRIBE)]
    Subscribe {
        #[command(flatten)]
        words: TaskWords,
        #[command(flatten)]
        options: task::subscribe::SubscribeOptions,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// Save the files that a task has produced
    #[command(override_usage = "switchboard task download [OPTIONS] AGENT ID", after_help = DOWNLOAD)]
    Download {
        #[command(flatten)]
        words: TaskWords,
        #[command(flatten)]
        options: task::download::DownloadOptions,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// Say where the agent shall report a task's changes (webhooks)
    #[command(subcommand)]
    PushConfig(PushConfigCommand),
}

#[derive(Debug, Subcommand)]
pub(super) enum PushConfigCommand {
    /// Have the agent report a task's changes to an address of yours
    #[command(override_usage = "switchboard task push-config set [OPTIONS] --url URL AGENT ID", after_help = PUSH)]
    Set {
        #[command(flatten)]
        words: TaskWords,
        #[command(flatten)]
        options: task::push_config::PushConfigOptions,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// Show one webhook of a task
    #[command(override_usage = "switchboard task push-config get [OPTIONS] AGENT ID WEBHOOK", after_help = PUSH)]
    Get {
        #[command(flatten)]
        words: WebhookWords,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// List the webhooks of a task
    #[command(override_usage = "switchboard task push-config list [OPTIONS] AGENT ID", after_help = PUSH)]
    List {
        #[command(flatten)]
        words: TaskWords,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// Remove a webhook of a task
    #[command(override_usage = "switchboard task push-config delete [OPTIONS] AGENT ID WEBHOOK", after_help = PUSH)]
    Delete {
        #[command(flatten)]
        words: WebhookWords,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(super) struct TaskWords {
    /// The agent: a URL, a file with its card, or a name of the workspace
    agent: Option<String>,
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

impl TaskWords {
    fn words(self) -> Vec<String> {
        [self.agent, self.id].into_iter().flatten().collect()
    }
}

impl WebhookWords {
    fn words(self) -> Vec<String> {
        self.task.words().into_iter().chain(self.webhook).collect()
    }
}

impl TaskCommand {
    pub(super) fn run(self, printer: Printer) -> ExitCode {
        match self {
            Self::Get { words, options, flags } => task::get::run(words.words(), options, &flags, printer),
            Self::List { agent, options, flags } => {
                task::list::run(agent.into_iter().collect(), options, &flags, printer)
            }
            Self::Cancel { words, options, flags } => task::cancel::run(words.words(), &options, &flags, printer),
            Self::Subscribe { words, options, flags } => task::subscribe::run(words.words(), &options, &flags, printer),
            Self::Download { words, options, flags } => task::download::run(words.words(), &options, &flags, printer),
            Self::PushConfig(command) => command.run(printer),
        }
    }
}

impl PushConfigCommand {
    fn run(self, printer: Printer) -> ExitCode {
        match self {
            Self::Set { words, options, flags } => task::push_config::set(words.words(), options, &flags, printer),
            Self::Get { words, flags } => task::push_config::get(words.words(), &flags, printer),
            Self::List { words, flags } => task::push_config::list(words.words(), &flags, printer),
            Self::Delete { words, flags } => task::push_config::delete(words.words(), &flags, printer),
        }
    }
}
