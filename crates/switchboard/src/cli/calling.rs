//! What can be typed to call agents: the commands and the help under them.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use switchboard_host::printer::Printer;

use crate::cli::task::TaskCommand;
use crate::cli::{CallFlags, DataFlags};
use crate::commands::calling;

const SEND: &str = with_exit_codes!(
    "The agent makes a task of the message and answers when the task has ended or needs something from you. What it has produced comes first, then the task's id, its context (the conversation it belongs to) and its state, and if there is something to do next, the command for it.",
    "",
    "Examples:",
    "  switchboard send echo \"hello\"                         an agent of the running switchboard serve",
    "  switchboard send https://agent.example \"hello\"        any agent",
    "  git diff | switchboard send reviewer -                the text from standard input",
    "  switchboard send reviewer \"look\" --file a.pdf --file b.bin --media-type image/png",
    "  switchboard send planner --task-id ID \"on Friday\"     answers a task that has asked",
    "  switchboard send planner \"plan\" --async               does not wait; task get does",
    "  switchboard send planner \"plan\" -o json --stream      every event as a line of JSON",
    "  switchboard send echo \"hello\" --quiet                 nothing but the answer"
);

const CHAT: &str = with_exit_codes!(
    "Every line is a message, and the agent knows what was said before. /done ends the conversation, /quit leaves it as it is, /task shows where it stands, /help says so; a line that begins with // is said with one of them. Lines from a pipe or a file are said one after the other.",
    "",
    "Examples:",
    "  switchboard chat guide",
    "  switchboard chat guide --save talk.json               a later run goes on from there",
    "  switchboard chat https://agent.example < questions.txt"
);

const CARD: &str = with_exit_codes!(
    "A card is what an agent publishes about itself: its name, what it is good at (skills), what it can do (stream, call webhooks), where and how it is called (interfaces), and which credentials it wants.",
    "",
    "Examples:",
    "  switchboard card https://agent.example",
    "  switchboard card https://agent.example --validate     what is wrong with it",
    "  switchboard card ./agent-card.json -o json            a card in a file"
);

const SKILLS: &str =
    with_exit_codes!("A skill is something that the agent says it is good at; send --skill ID asks for one.");

const LOGIN: &str = with_exit_codes!(
    "For agents whose card asks for OAuth 2. The token is kept in ~/.config/a2a-cli/tokens.json, which only you can read, and sent to this agent from then on, unless other credentials are given. The client secret is never kept: it is read from A2ACLI_CLIENT_SECRET whenever it is needed.",
    "",
    "Examples:",
    "  switchboard auth login https://agent.example --client-id my-app     shows a code to type in on a web page",
    "  A2ACLI_CLIENT_SECRET=… switchboard auth login https://agent.example --client-id robot --flow client-credentials"
);

const LOGOUT: &str = with_exit_codes!("Nothing is said to the agent or to the server that gave the token.");

/// The same where the exit code is a verdict.
const CONFORMANCE: &str = "\
Asks the agent everything that the A2A specification says it must answer, and reports rule by rule what was sent, \
what was seen and how to fix what is wrong. A few small messages are sent; the only tasks that are canceled are those \
that they have made.

Examples:
  switchboard check https://agent.example
  switchboard check https://agent.example --only card --only errors
  switchboard check echo -o json
  switchboard check echo --strict --junit report.xml    for a build server

AGENT is a URL (https://agent.example, its card or its endpoint), a file that holds its card, or the name of an agent \
of the workspace, which switchboard agents lists.
Exit codes: 0 nothing failed that the specification demands; 1 something did; 2 typed wrongly; 3 not reachable; \
4 credentials; 5 time is up.";

#[derive(Debug, Subcommand)]
pub(super) enum CallingCommand {
    /// Send a message to an agent and wait for its answer
    #[command(override_usage = "switchboard send [OPTIONS] AGENT TEXT...", after_help = SEND)]
    Send {
        /// The agent: a URL, a file with its card, or a name of the workspace
        agent: Option<String>,
        /// What to say; - reads it from standard input
        text: Vec<String>,
        #[command(flatten)]
        options: calling::send::SendOptions,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// Talk with an agent, a line at a time
    #[command(override_usage = "switchboard chat [OPTIONS] AGENT", after_help = CHAT)]
    Chat {
        #[command(flatten)]
        agent: AgentWord,
        #[command(flatten)]
        options: calling::chat::ChatOptions,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// Show what an agent says of itself: its card
    #[command(
        override_usage = "switchboard card [get] [OPTIONS] AGENT",
        after_help = CARD,
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true
    )]
    Card {
        #[command(subcommand)]
        command: Option<CardCommand>,
        #[command(flatten)]
        arguments: CardArguments,
    },
    /// List what an agent is good at
    #[command(override_usage = "switchboard skills [OPTIONS] AGENT", after_help = SKILLS)]
    Skills {
        #[command(flatten)]
        agent: AgentWord,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// Say whether an agent keeps to the specification, and what to put right
    #[command(
        visible_alias = "check",
        override_usage = "switchboard conformance [OPTIONS] AGENT",
        after_help = CONFORMANCE
    )]
    Conformance {
        #[command(flatten)]
        agent: AgentWord,
        #[command(flatten)]
        options: calling::conformance::ConformanceOptions,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// Look after what was sent: tasks, their files, their webhooks
    #[command(subcommand)]
    Task(TaskCommand),
    /// List the agents that can be called by name
    Agents {
        #[command(flatten)]
        flags: DataFlags,
    },
    /// Get a token for an agent that asks for OAuth, or forget it
    #[command(subcommand)]
    Auth(AuthCommand),
}

#[derive(Debug, Subcommand)]
pub(super) enum CardCommand {
    /// Show the card
    #[command(override_usage = "switchboard card get [OPTIONS] AGENT", after_help = CARD)]
    Get {
        #[command(flatten)]
        arguments: CardArguments,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum AuthCommand {
    /// Get a token and keep it for calls to this agent
    #[command(override_usage = "switchboard auth login [OPTIONS] AGENT", after_help = LOGIN)]
    Login {
        #[command(flatten)]
        agent: AgentWord,
        #[command(flatten)]
        options: calling::auth::LoginOptions,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
    /// Forget the token for an agent
    #[command(override_usage = "switchboard auth logout [OPTIONS] AGENT", after_help = LOGOUT)]
    Logout {
        #[command(flatten)]
        agent: AgentWord,
        #[command(flatten)]
        flags: Box<CallFlags>,
    },
}

#[derive(Debug, Clone, Args)]
pub(super) struct AgentWord {
    /// The agent: a URL, a file with its card, or a name of the workspace
    agent: Option<String>,
}

impl AgentWord {
    pub(super) fn words(self) -> Vec<String> {
        self.agent.into_iter().collect()
    }
}

#[derive(Debug, Args)]
pub(super) struct CardArguments {
    #[command(flatten)]
    agent: AgentWord,
    #[command(flatten)]
    options: calling::card::CardOptions,
    #[command(flatten)]
    flags: Box<CallFlags>,
}

impl CallingCommand {
    /// Whether nothing but the text of the answer is wanted.
    pub(super) fn is_quiet(&self) -> bool {
        matches!(self, Self::Send { options, .. } if options.is_quiet())
    }

    pub(super) fn run(self, printer: Printer) -> ExitCode {
        match self {
            Self::Send { agent, text, options, flags } => {
                calling::send::run(agent.into_iter().chain(text).collect(), &options, &flags, printer)
            }
            Self::Chat { agent, options, flags } => calling::chat::run(agent.words(), &options, &flags, printer),
            Self::Card { command: Some(CardCommand::Get { arguments }), .. }
            | Self::Card { command: None, arguments } => {
                let CardArguments { agent, options, flags } = arguments;
                calling::card::run(agent.words(), &options, &flags, printer)
            }
            Self::Skills { agent, flags } => calling::skills::run(agent.words(), &flags, printer),
            Self::Conformance { agent, options, mut flags } => {
                flags.is_pinned = true;
                calling::conformance::run(agent.words(), &options, &flags, printer)
            }
            Self::Task(command) => command.run(printer),
            Self::Agents { flags } => calling::agents::run(&flags, printer),
            Self::Auth(AuthCommand::Login { agent, options, flags }) => {
                calling::auth::login(agent.words(), &options, &flags, printer)
            }
            Self::Auth(AuthCommand::Logout { agent, flags }) => calling::auth::logout(agent.words(), &flags, printer),
        }
    }
}
