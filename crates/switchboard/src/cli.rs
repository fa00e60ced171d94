//! The command line: what can be typed, and which command answers. One file in `commands/` per command.
//! Exit codes: 0 done, 1 failed, 2 typed wrongly; commands that call agents have more, see `commands::calling`.

mod call;
mod task;
mod webhooks;

pub use call::CallFlags;
pub(crate) use call::time;
pub use webhooks::PageFlags;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::commands;
use crate::config::{Flag, Overrides, Problems, Workspace};
use crate::printer::{Output, Printer};
use task::TaskCommand;
use webhooks::WebhooksCommand;

/// Hosts agents behind A2A, with durable tasks, and calls agents anywhere.
#[derive(Debug, Parser)]
#[command(name = "switchboard", version, arg_required_else_help = true)]
struct CommandLine {
    /// Form of the answer
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: Output,

    /// The same as -o json
    #[arg(long, global = true, conflicts_with = "output")]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

/// What stands under the help of commands that call agents.
const EXIT_CODES: &str = "\
AGENT is a URL (https://agent.example, its card or its endpoint) or the name of an agent of the workspace.
Exit codes: 0 done, whatever became of the task; 1 failed; 2 typed wrongly; 3 not reachable; 4 credentials; 5 time is up.";

/// The same where the exit code is a verdict.
const CONFORMANCE_EXIT_CODES: &str = "\
AGENT is a URL (https://agent.example, its card or its endpoint) or the name of an agent of the workspace.
A few small messages are sent; the only tasks that are canceled are those that they have made.
Exit codes: 0 nothing failed that the specification demands; 1 something did; 2 typed wrongly; 3 not reachable;
4 credentials; 5 time is up.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Host the agents of a workspace
    Serve {
        #[command(flatten)]
        flags: ConfigFlags,
    },
    /// Send a message to an agent and wait for its answer
    #[command(override_usage = "switchboard send [OPTIONS] AGENT TEXT...", after_help = EXIT_CODES)]
    Send {
        /// The agent: a URL, or a name of the workspace
        agent: Option<String>,
        /// What to say; - reads it from standard input
        text: Vec<String>,
        #[command(flatten)]
        wishes: commands::calling::send::Wishes,
        #[command(flatten)]
        flags: CallFlags,
    },
    /// Talk with an agent, a line at a time
    #[command(override_usage = "switchboard chat [OPTIONS] AGENT", after_help = EXIT_CODES)]
    Chat {
        /// The agent: a URL, or a name of the workspace
        agent: Option<String>,
        #[command(flatten)]
        wishes: commands::calling::chat::Wishes,
        #[command(flatten)]
        flags: CallFlags,
    },
    /// Show what an agent says of itself: its card
    #[command(
        override_usage = "switchboard card [get] [OPTIONS] AGENT",
        after_help = EXIT_CODES,
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
    #[command(override_usage = "switchboard skills [OPTIONS] AGENT", after_help = EXIT_CODES)]
    Skills {
        /// The agent: a URL, or a name of the workspace
        agent: Option<String>,
        #[command(flatten)]
        flags: CallFlags,
    },
    /// Say whether an agent keeps to the specification, and what to put right
    #[command(
        visible_alias = "check",
        override_usage = "switchboard conformance [OPTIONS] AGENT",
        after_help = CONFORMANCE_EXIT_CODES
    )]
    Conformance {
        /// The agent: a URL, or a name of the workspace
        agent: Option<String>,
        #[command(flatten)]
        wishes: commands::calling::conformance::Wishes,
        #[command(flatten)]
        flags: CallFlags,
    },
    /// Look after what was sent: tasks, their files, their webhooks
    #[command(subcommand)]
    Task(TaskCommand),
    /// List the agents that can be called by name
    Agents {
        #[command(flatten)]
        flags: DataFlags,
    },
    /// Make, list and revoke API keys
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Look after webhooks: deliveries, dead letters, secrets
    #[command(subcommand)]
    Webhooks(WebhooksCommand),
    /// Check or back up the data
    #[command(subcommand)]
    Db(DbCommand),
    /// Say whether a server runs on the data, and which
    Status {
        #[command(flatten)]
        flags: DataFlags,
    },
    /// Check the configuration, apply it to a running server, or print its schema
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the script that completes these commands in a shell
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Print the version
    Version,
}

#[derive(Debug, Subcommand)]
enum CardCommand {
    /// Show the card
    #[command(override_usage = "switchboard card get [OPTIONS] AGENT", after_help = EXIT_CODES)]
    Get {
        #[command(flatten)]
        arguments: CardArguments,
    },
}

#[derive(Debug, Args)]
struct CardArguments {
    /// The agent: a URL, or a name of the workspace
    agent: Option<String>,
    #[command(flatten)]
    wishes: commands::calling::card::Wishes,
    #[command(flatten)]
    flags: CallFlags,
}

impl CardArguments {
    fn run(self, printer: Printer) -> ExitCode {
        commands::calling::card::run(self.agent.into_iter().collect(), &self.wishes, &self.flags, printer)
    }
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Read the configuration and say what is in force and where it comes from
    Check {
        #[command(flatten)]
        flags: ConfigFlags,
    },
    /// Have the running server read it again, as SIGHUP does, and apply whom webhooks may reach
    Reload {
        #[command(flatten)]
        flags: DataFlags,
    },
    /// Print the JSON schema of a configuration file
    Schema {
        /// File to describe
        #[arg(value_enum, default_value_t)]
        file: commands::config::schema::SchemaFile,
    },
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make a key and show it, once
    Create {
        #[command(flatten)]
        wishes: commands::keys::create::Wishes,
        #[command(flatten)]
        flags: DataFlags,
    },
    /// List all keys, without their secrets
    List {
        #[command(flatten)]
        flags: DataFlags,
    },
    /// Take a key out of use, at once and for good
    Revoke {
        /// Id of the key, as the list shows it
        id: String,
        #[command(flatten)]
        flags: DataFlags,
    },
}

#[derive(Debug, Subcommand)]
enum DbCommand {
    /// Look for damage in the data file; changes nothing
    Check {
        #[command(flatten)]
        flags: DataFlags,
    },
    /// Copy the data file, also while a server writes to it
    Backup {
        /// File to write; it must not exist yet
        file: PathBuf,
        #[command(flatten)]
        flags: DataFlags,
    },
}

/// The flags of every command that needs the data of a workspace and listens nowhere.
#[derive(Debug, Clone, Default, Args)]
pub struct DataFlags {
    /// Workspace folder, which holds switchboard.yaml and agents.yaml
    #[arg(long, value_name = "DIR", env = "SWITCHBOARD_WORKSPACE", default_value = ".")]
    pub workspace: PathBuf,

    /// Data directory (store.dataDir)
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

impl DataFlags {
    /// Loads the workspace under these flags and this process's environment.
    ///
    /// # Errors
    /// Everything that is wrong with the configuration.
    pub fn load(&self) -> Result<Workspace, Problems> {
        let flags = ConfigFlags { workspace: self.workspace.clone(), bind: None, data_dir: self.data_dir.clone() };
        flags.read()
    }
}

/// The flags of every command that needs the configuration. They stand above the environment and the files.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigFlags {
    /// Workspace folder, which holds switchboard.yaml and agents.yaml
    #[arg(long, value_name = "DIR", env = "SWITCHBOARD_WORKSPACE", default_value = ".")]
    pub workspace: PathBuf,

    /// Address to listen on (server.bind)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub bind: Option<String>,

    /// Data directory (store.dataDir)
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

impl ConfigFlags {
    /// Loads the workspace under these flags and this process's environment, and looks into the files it names.
    ///
    /// # Errors
    /// Everything that is wrong with the configuration.
    pub fn load(&self) -> Result<Workspace, Problems> {
        let workspace = self.read()?;
        workspace.check_files()?;
        Ok(workspace)
    }

    /// The same for a program that brings its own agents: those of the workspace are not read.
    ///
    /// # Errors
    /// Everything that is wrong with the settings.
    pub fn load_settings(&self) -> Result<Workspace, Problems> {
        let workspace = Workspace::settings_only(&self.workspace, &self.overrides())?;
        workspace.check_files()?;
        Ok(workspace)
    }

    fn read(&self) -> Result<Workspace, Problems> {
        Workspace::load(&self.workspace, &self.overrides())
    }

    fn overrides(&self) -> Overrides {
        Overrides { environment: environment(), flags: self.flags() }
    }

    fn flags(&self) -> Vec<Flag> {
        let mut flags = Vec::new();
        if let Some(bind) = &self.bind {
            flags.push(Flag { flag: "--bind", key: "server.bind", value: bind.clone() });
        }
        if let Some(data_dir) = &self.data_dir {
            // A path on the command line starts where the person stands, not in the workspace folder.
            let absolute = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.clone());
            flags.push(Flag { flag: "--data-dir", key: "store.dataDir", value: absolute.display().to_string() });
        }
        flags
    }
}

/// Runs the program with the arguments it was started with.
#[must_use]
pub fn run() -> ExitCode {
    let command_line = match CommandLine::try_parse() {
        Ok(command_line) => command_line,
        // In the words of the command, which knows more than the number.
        Err(message) if message.kind() == ErrorKind::DisplayVersion => {
            return commands::version::run(Printer::new(Output::Text));
        }
        // Help is an answer, everything else is usage; a closed terminal changes neither.
        Err(message) if message.use_stderr() => return typed_wrongly(&message),
        Err(message) => {
            let _ = message.print();
            return ExitCode::SUCCESS;
        }
    };
    let printer = Printer::new(if command_line.json { Output::Json } else { command_line.output });
    match command_line.command {
        Command::Send { agent, text, wishes, flags } => {
            commands::calling::send::run(agent.into_iter().chain(text).collect(), &wishes, &flags, printer)
        }
        Command::Chat { agent, wishes, flags } => {
            commands::calling::chat::run(agent.into_iter().collect(), &wishes, &flags, printer)
        }
        Command::Card { command: Some(CardCommand::Get { arguments }), .. }
        | Command::Card { command: None, arguments } => arguments.run(printer),
        Command::Skills { agent, flags } => {
            commands::calling::skills::run(agent.into_iter().collect(), &flags, printer)
        }
        Command::Conformance { agent, wishes, flags } => {
            commands::calling::conformance::run(agent.into_iter().collect(), &wishes, &flags, printer)
        }
        Command::Task(command) => command.run(printer),
        Command::Agents { flags } => commands::calling::agents::run(&flags, printer),
        Command::Completion { shell } => commands::calling::completion::run(shell, CommandLine::command(), printer),
        Command::Config(ConfigCommand::Check { flags }) => commands::config::check::run(&flags, printer),
        Command::Config(ConfigCommand::Reload { flags }) => commands::config::reload::run(&flags, printer),
        Command::Config(ConfigCommand::Schema { file }) => commands::config::schema::run(file, printer),
        Command::Serve { flags } => commands::serve::run(&flags, printer),
        Command::Keys(KeysCommand::Create { wishes, flags }) => commands::keys::create::run(&flags, wishes, printer),
        Command::Keys(KeysCommand::List { flags }) => commands::keys::list::run(&flags, printer),
        Command::Keys(KeysCommand::Revoke { id, flags }) => commands::keys::revoke::run(&flags, &id, printer),
        Command::Webhooks(command) => command.run(printer),
        Command::Db(DbCommand::Check { flags }) => commands::db::check::run(&flags, printer),
        Command::Db(DbCommand::Backup { file, flags }) => commands::db::backup::run(&flags, &file, printer),
        Command::Status { flags } => commands::status::run(&flags, printer),
        Command::Version => commands::version::run(printer),
    }
}

/// Says what was typed wrongly, in the form that was asked for as far as one can tell.
fn typed_wrongly(message: &clap::Error) -> ExitCode {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_output = |pair: &[String]| matches!(pair[0].as_str(), "-o" | "--output") && pair[1] == "json";
    let is_json = words.windows(2).any(is_output)
        || words.iter().any(|word| matches!(word.as_str(), "--json" | "-ojson" | "-o=json" | "--output=json"));
    if is_json {
        let text = message.render().to_string();
        let text = text.trim().trim_start_matches("error: ");
        let first = text.split("\n\n").next().unwrap_or_default();
        let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
        let failure = commands::calling::Failure::usage(first, "--help shows what is expected");
        return failure.print(Printer::new(Output::Json));
    }
    let _ = message.print();
    ExitCode::from(2)
}

/// The environment as text. A name or value that is not Unicode is shown with replacement characters and will then
/// be refused by whoever reads it, with its name.
fn environment() -> std::collections::BTreeMap<String, String> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        CommandLine::command().debug_assert();
    }
}
