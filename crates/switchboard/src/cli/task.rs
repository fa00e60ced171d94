//! What can be typed after `switchboard task`.

use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::CallFlags;
use crate::commands::calling::task;
use crate::printer::Printer;

/// The commands for tasks of an agent.
#[derive(Debug, Subcommand)]
pub(super) enum TaskCommand {
    /// Show a task: where it stands and what it has produced
    #[command(override_usage = "switchboard task get [OPTIONS] AGENT ID")]
    Get {
        #[command(flatten)]
        words: TaskWords,
        #[command(flatten)]
        wishes: task::get::Wishes,
        #[command(flatten)]
        flags: CallFlags,
    },
    /// List tasks, the newest first
    #[command(override_usage = "switchboard task list [OPTIONS] AGENT")]
    List {
        /// The agent: a URL, or a name of the workspace
        agent: Option<String>,
        #[command(flatten)]
        wishes: task::list::Wishes,
        #[command(flatten)]
        flags: CallFlags,
    },
    /// Stop a task
    #[command(override_usage = "switchboard task cancel [OPTIONS] AGENT ID")]
    Cancel {
        #[command(flatten)]
        words: TaskWords,
        #[command(flatten)]
        flags: CallFlags,
    },
    /// Watch a task until it ends or waits for you
    #[command(
        override_usage = "switchboard task subscribe [OPTIONS] AGENT ID",
        after_help = "With -o json every event is one line, as it comes."
    )]
    Subscribe {
        #[command(flatten)]
        words: TaskWords,
        /// Accepted for scripts that say it; events always come as they happen here
        #[arg(long, hide = true)]
        stream: bool,
        #[command(flatten)]
        flags: CallFlags,
    },
    /// Save the files that a task has produced
    #[command(override_usage = "switchboard task download [OPTIONS] AGENT ID")]
    Download {
        #[command(flatten)]
        words: TaskWords,
        #[command(flatten)]
        wishes: task::download::Wishes,
        #[command(flatten)]
        flags: CallFlags,
    },
    /// Say where the agent shall report a task's changes (webhooks)
    #[command(subcommand)]
    PushConfig(PushConfigCommand),
}

/// The commands for the webhooks of a task.
#[derive(Debug, Subcommand)]
pub(super) enum PushConfigCommand {
    /// Have the agent report a task's changes to an address of yours
    #[command(override_usage = "switchboard task push-config set [OPTIONS] --url URL AGENT ID")]
    Set {
        #[command(flatten)]
        words: TaskWords,
        #[command(flatten)]
        wishes: task::push_config::Wishes,
        #[command(flatten)]
        flags: CallFlags,
    },
    /// Show one webhook of a task
    #[command(override_usage = "switchboard task push-config get [OPTIONS] AGENT ID WEBHOOK")]
    Get {
        #[command(flatten)]
        words: WebhookWords,
        #[command(flatten)]
        flags: CallFlags,
    },
    /// List the webhooks of a task
    #[command(override_usage = "switchboard task push-config list [OPTIONS] AGENT ID")]
    List {
        #[command(flatten)]
        words: TaskWords,
        #[command(flatten)]
        flags: CallFlags,
    },
    /// Remove a webhook of a task
    #[command(override_usage = "switchboard task push-config delete [OPTIONS] AGENT ID WEBHOOK")]
    Delete {
        #[command(flatten)]
        words: WebhookWords,
        #[command(flatten)]
        flags: CallFlags,
    },
}

/// A task of an agent.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct TaskWords {
    /// The agent: a URL, or a name of the workspace
    agent: Option<String>,
    /// Id of the task
    id: Option<String>,
}

/// A webhook of a task of an agent.
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
            Self::Get { words, wishes, flags } => task::get::run(words.words(), wishes, &flags, printer),
            Self::List { agent, wishes, flags } => {
                task::list::run(agent.into_iter().collect(), wishes, &flags, printer)
            }
            Self::Cancel { words, flags } => task::cancel::run(words.words(), &flags, printer),
            Self::Subscribe { words, flags, .. } => task::subscribe::run(words.words(), &flags, printer),
            Self::Download { words, wishes, flags } => task::download::run(words.words(), &wishes, &flags, printer),
            Self::PushConfig(command) => command.run(printer),
        }
    }
}

impl PushConfigCommand {
    fn run(self, printer: Printer) -> ExitCode {
        match self {
            Self::Set { words, wishes, flags } => task::push_config::set(words.words(), wishes, &flags, printer),
            Self::Get { words, flags } => task::push_config::get(words.words(), &flags, printer),
            Self::List { words, flags } => task::push_config::list(words.words(), &flags, printer),
            Self::Delete { words, flags } => task::push_config::delete(words.words(), &flags, printer),
        }
    }
}
