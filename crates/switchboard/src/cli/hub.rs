//! What can be typed to ask the hub of a server: which agents there are, how they do and what happens.

mod flags;

pub(crate) use flags::HubFlags;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use switchboard_host::printer::Printer;

use crate::commands::calling::agents::{self, NamedAgent};
use crate::commands::calling::{dispatch, feed, health, plan};

/// Puts lines above what is the same for all commands that ask a hub.
macro_rules! with_hub_exit_codes {
    ($($line:literal),*) => {
        concat!(
            $($line, "\n",)*
            "Exit codes: 0 done; 1 failed; 2 typed wrongly; 3 not reachable; 4 credentials; 5 time is up; 130 Ctrl-C."
        )
    };
}

mod ceremonies;
mod inbox;
mod routes;

const EXIT_CODES: &str = with_hub_exit_codes!();

const AGENTS: &str = with_hub_exit_codes!(
    "Without a command it lists the agents, also while no server runs. The other commands ask the running server: that of the workspace, or the one that --server names. If the server has keys, they need one with the role that the command says.",
    "Agents of agents.yaml are changed there; add, update and remove are for agents that are registered with the server.",
    "",
    "Examples:",
    "  switchboard agents                                    who there is, and whether it can be reached",
    "  switchboard agents probe https://agent.example        what is there, before it is added",
    "  switchboard agents add https://agent.example --name reviewer",
    "  switchboard agents rollcall                           every agent, looked at now; 1 if one fails",
    ""
);

const ADD: &str = with_hub_exit_codes!(
    "A file holds what an item of agents.yaml would, in YAML or JSON, one item or several: name, url, and the names of variables of the server with credentials, which hub.registrations.env has to allow. It needs the role admin.",
    "",
    "Examples:",
    "  switchboard agents add https://agent.example          under the name on its card",
    "  switchboard agents add https://agent.example --name reviewer",
    "  switchboard agents add reviewer.yaml",
    ""
);

const ROLLCALL: &str = "\
One line for each agent: pass; warn, if it works and something is to be looked at; fail, if a message to it would not \
arrive. With the role operator the cards of agents elsewhere are fetched anew; without it the last look counts.\n\
Exit codes: 0 no agent fails; 1 one does; 2 typed wrongly; 3 the server is not reachable; 4 credentials; 130 Ctrl-C.";

const HEALTH: &str = with_hub_exit_codes!(
    "Counted are tasks that have ended. A key without a role sees how its own went, and no alerts.",
    "",
    "Examples:",
    "  switchboard health                                    every agent, the last 24 hours",
    "  switchboard health --agent reviewer --window 1h       one, with its last failures",
    "  switchboard health --skill draw                       who does best at it",
    ""
);

const FEED: &str = with_hub_exit_codes!(
    "With -o json every item is a line of JSON. Its id is the place that --from goes on after. A key without a role sees what belongs to its own tasks.",
    "",
    "Examples:",
    "  switchboard feed                                      all that is kept",
    "  switchboard feed --follow                             what happens from now on",
    "  switchboard feed -f --topic 'task.failed.*' --topic 'alert.#'",
    "  switchboard feed --task ID                            the story of a task",
    "  switchboard feed -f --from 1.0.42.0 -o json           what comes after an item, as lines of JSON",
    ""
);

const DISPATCH: &str = with_hub_exit_codes!(
    "The server finds the agent: the targets, else who had the conversation, else who has the skill, else a keyword of the text, else the default agent. Several targets fan out: each is a task of its own, and the policy says how many have to complete.",
    "",
    "Examples:",
    "  switchboard dispatch \"what is new?\"                   to whom it concerns",
    "  switchboard dispatch --skill review \"look at this\"    to one of those who can",
    "  switchboard dispatch --target echo --target guide --fanout first \"hello\"",
    "  git diff | switchboard dispatch --skill review -",
    ""
);

const PLAN: &str = with_hub_exit_codes!(
    "The score is how much a skill is declared to change the value, times how far it is trusted: what it declares itself until five of its tasks have ended within a day, then how they went.",
    "",
    "Examples:",
    "  switchboard plan board data.open down                 who closes what is open on the board",
    "  switchboard plan board data.open down --dispatch \"close what is stale\"",
    ""
);

/// What was typed for a command that asks a hub.
#[derive(Debug, Args)]
pub(crate) struct OnHub<O: Args> {
    #[command(flatten)]
    pub(crate) options: O,
    #[command(flatten)]
    pub(crate) flags: HubFlags,
}

#[derive(Debug, Subcommand)]
pub(super) enum HubCommand {
    /// List the agents that can be called by name; add, change, remove and check agents elsewhere
    #[command(
        override_usage = "switchboard agents [OPTIONS] [COMMAND]",
        after_help = AGENTS,
        args_conflicts_with_subcommands = true
    )]
    Agents {
        #[command(subcommand)]
        command: Option<AgentsCommand>,
        #[command(flatten)]
        flags: HubFlags,
    },
    /// Say how agents do: successes, durations and cost, and which alerts fire
    #[command(after_help = HEALTH)]
    Health(OnHub<health::HealthOptions>),
    /// Show what happens: messages, states, results, agents that come and go, alerts
    #[command(after_help = FEED)]
    Feed(OnHub<feed::FeedOptions>),
    /// Send a message to the agent that fits, or to several
    #[command(override_usage = "switchboard dispatch [OPTIONS] TEXT...", after_help = DISPATCH)]
    Dispatch(Box<OnHub<dispatch::DispatchOptions>>),
    /// Find skills by what they change, the best first
    #[command(after_help = PLAN)]
    Plan(OnHub<plan::PlanOptions>),
    /// List questions that wait for an answer; approve, reject, modify or answer them
    #[command(
        override_usage = "switchboard inbox [OPTIONS] [COMMAND]",
        after_help = inbox::INBOX,
        args_conflicts_with_subcommands = true
    )]
    Inbox {
        #[command(subcommand)]
        command: Option<inbox::InboxCommand>,
        #[command(flatten)]
        flags: HubFlags,
    },
    /// List what is done for events: messages to agents, POSTs to addresses; register and remove it
    #[command(
        override_usage = "switchboard routes [OPTIONS] [COMMAND]",
        after_help = routes::ROUTES,
        args_conflicts_with_subcommands = true
    )]
    Routes {
        #[command(subcommand)]
        command: Option<routes::RoutesCommand>,
        #[command(flatten)]
        flags: HubFlags,
    },
    /// List what runs by a schedule; create, change, delete and run it
    #[command(
        override_usage = "switchboard ceremonies [OPTIONS] [COMMAND]",
        after_help = ceremonies::CEREMONIES,
        args_conflicts_with_subcommands = true
    )]
    Ceremonies {
        #[command(subcommand)]
        command: Option<ceremonies::CeremoniesCommand>,
        #[command(flatten)]
        flags: HubFlags,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum AgentsCommand {
    /// List the agents: kind, state, skills and address
    #[command(after_help = AGENTS)]
    List(HubFlags),
    /// Show what is known of an agent
    #[command(after_help = EXIT_CODES)]
    Show(OnHub<NamedAgent>),
    /// Look for an agent at an address, as the server sees it; needs the role admin
    #[command(after_help = EXIT_CODES)]
    Probe(OnHub<agents::probe::ProbeOptions>),
    /// Register an agent elsewhere with the server, which serves it from then on
    #[command(after_help = ADD)]
    Add(OnHub<agents::add::AddOptions>),
    /// Replace the registration of an agent; needs the role admin
    #[command(after_help = EXIT_CODES)]
    Update(OnHub<agents::update::UpdateOptions>),
    /// Remove a registered agent; needs the role admin
    #[command(after_help = EXIT_CODES)]
    Remove(OnHub<agents::remove::RemoveOptions>),
    /// Fetch the card of an agent elsewhere now; needs the role operator
    #[command(after_help = EXIT_CODES)]
    Refresh(OnHub<NamedAgent>),
    /// Accept the changed card of an agent whose changes are held (cardChanges: hold); needs the role admin
    #[command(after_help = EXIT_CODES)]
    Accept(OnHub<agents::accept::AcceptOptions>),
    /// Look at every agent now and say whether it can be called
    #[command(after_help = ROLLCALL)]
    Rollcall(HubFlags),
}

impl HubCommand {
    pub(super) fn run(self, printer: Printer) -> Result<(), ExitCode> {
        match self {
            Self::Agents { command: None, flags } => agents::list::run(&flags, printer),
            Self::Agents { command: Some(command), .. } => command.run(printer),
            Self::Health(OnHub { options, flags }) => health::run(&flags, &options, printer),
            Self::Feed(OnHub { options, flags }) => feed::run(&flags, &options, printer),
            Self::Dispatch(typed) => dispatch::run(&typed.flags, &typed.options, printer),
            Self::Plan(OnHub { options, flags }) => plan::run(&flags, &options, printer),
            Self::Inbox { command: None, flags } => inbox::list_open(&flags, printer),
            Self::Inbox { command: Some(command), .. } => command.run(printer),
            Self::Routes { command: None, flags } => routes::list_all(&flags, printer),
            Self::Routes { command: Some(command), .. } => command.run(printer),
            Self::Ceremonies { command: None, flags } => ceremonies::list_all(&flags, printer),
            Self::Ceremonies { command: Some(command), .. } => command.run(printer),
        }
    }
}

impl AgentsCommand {
    fn run(self, printer: Printer) -> Result<(), ExitCode> {
        match self {
            Self::List(flags) => agents::list::run(&flags, printer),
            Self::Show(OnHub { options, flags }) => agents::show::run(&flags, &options, printer),
            Self::Probe(OnHub { options, flags }) => agents::probe::run(&flags, &options, printer),
            Self::Add(OnHub { options, flags }) => agents::add::run(&flags, &options, printer),
            Self::Update(OnHub { options, flags }) => agents::update::run(&flags, &options, printer),
            Self::Remove(OnHub { options, flags }) => agents::remove::run(&flags, &options, printer),
            Self::Refresh(OnHub { options, flags }) => agents::refresh::run(&flags, &options, printer),
            Self::Accept(OnHub { options, flags }) => agents::accept::run(&flags, &options, printer),
            Self::Rollcall(flags) => agents::rollcall::run(&flags, printer),
        }
    }
}
