//! What can be typed to call agents: the commands and the help under them.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use switchboard_host::printer::Printer;

use crate::cli::task::TaskCommand;
use crate::commands::calling::{self, Call, NoOptions};

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
    Send(Call<MessageWords, calling::send::SendOptions>),
    /// Talk with an agent, a line at a time
    #[command(override_usage = "switchboard chat [OPTIONS] AGENT", after_help = CHAT)]
    Chat(Call<AgentWord, calling::chat::ChatOptions>),
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
        call: Call<AgentWord, calling::card::CardOptions>,
    },
    /// List what an agent is good at
    #[command(override_usage = "switchboard skills [OPTIONS] AGENT", after_help = SKILLS)]
    Skills(Call<AgentWord, NoOptions>),
    /// Say whether an agent keeps to the specification, and what to put right
    #[command(
        visible_alias = "check",
        override_usage = "switchboard conformance [OPTIONS] AGENT",
        after_help = CONFORMANCE
    )]
    Conformance(Call<AgentWord, calling::conformance::ConformanceOptions>),
    /// Look after what was sent: tasks, their files, their webhooks
    #[command(subcommand)]
    Task(TaskCommand),
    /// Get a token for an agent that asks for OAuth, or forget it
    #[command(subcommand)]
    Auth(AuthCommand),
}

#[derive(Debug, Subcommand)]
pub(super) enum CardCommand {
    /// Show the card
    #[command(override_usage = "switchboard card get [OPTIONS] AGENT", after_help = CARD)]
    Get(Call<AgentWord, calling::card::CardOptions>),
}

#[derive(Debug, Subcommand)]
pub(super) enum AuthCommand {
    /// Get a token and keep it for calls to this agent
    #[command(override_usage = "switchboard auth login [OPTIONS] AGENT", after_help = LOGIN)]
    Login(Call<AgentWord, calling::auth::LoginOptions>),
    /// Forget the token for an agent
    #[command(override_usage = "switchboard auth logout [OPTIONS] AGENT", after_help = LOGOUT)]
    Logout(Call<AgentWord, NoOptions>),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct AgentWord {
    /// The agent: a URL, a file with its card, or a name of the workspace
    pub(crate) agent: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct MessageWords {
    #[command(flatten)]
    agent: AgentWord,
    /// What to say; - reads it from standard input
    text: Vec<String>,
}

impl From<AgentWord> for Vec<String> {
    fn from(word: AgentWord) -> Self {
        word.agent.into_iter().collect()
    }
}

impl From<MessageWords> for Vec<String> {
    fn from(words: MessageWords) -> Self {
        words.agent.agent.into_iter().chain(words.text).collect()
    }
}

impl CallingCommand {
    pub(super) fn is_quiet(&self) -> bool {
        matches!(self, Self::Send(call) if call.options.quiet)
    }

    pub(super) fn run(self, printer: Printer) -> Result<(), ExitCode> {
        match self {
            Self::Send(call) => calling::send::run(call, printer),
            Self::Chat(call) => call.open([], printer, calling::chat::run),
            Self::Card { command: Some(CardCommand::Get(call)), .. } | Self::Card { command: None, call } => {
                call.open([], printer, calling::card::run)
            }
            Self::Skills(call) => call.open([], printer, calling::skills::run),
            Self::Conformance(mut call) => {
                call.flags.is_pinned = true;
                call.open([], printer, calling::conformance::run)
            }
            Self::Task(command) => command.run(printer),
            Self::Auth(AuthCommand::Login(call)) => call.open([], printer, calling::auth::login),
            Self::Auth(AuthCommand::Logout(call)) => calling::auth::logout(call, printer),
        }
    }
}
