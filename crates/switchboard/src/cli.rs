//! The command line: what can be typed, and which command answers. One file in `commands/` per command.
//! Exit codes: 0 done, 1 failed, 2 typed wrongly; commands that call agents have more, see `commands::calling`.

mod call;
#[macro_use]
mod exit_codes;
mod calling;
mod hub;
mod origins;
mod printed_commands;
pub(crate) mod settings;
mod task;
mod usage_errors;
mod webhooks;

pub(crate) use call::{API_KEY_HEADER, CallFlags, Transport, boolean, scalar, secret, time};
pub(crate) use calling::{AgentWord, MessageWords};
pub(crate) use hub::HubFlags;
pub(crate) use origins::{Origins, variables};
pub(crate) use task::TaskWords;
pub(crate) use webhooks::PageFlags;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use switchboard_host::config::{Problems, Workspace};
use switchboard_host::flags::ConfigFlags;
use switchboard_host::printer::{self, Output, Printer};
use switchboard_host::sanitize::shell_path;

use crate::commands;
use calling::CallingCommand;
use hub::HubCommand;
use settings::Settings;
use switchboard_fleet::config::FleetConfig;
use webhooks::WebhooksCommand;

/// Hosts agents behind A2A (the Agent2Agent protocol), with durable tasks, and calls agents anywhere.
#[derive(Debug, Parser)]
#[command(name = "switchboard", version, disable_version_flag = true, arg_required_else_help = true)]
struct CommandLine {
    /// Form of the answer: text for people, json for programs [default: text]
    #[arg(short, long, global = true, value_enum, value_name = "FORM", hide_possible_values = true)]
    output: Option<Output>,

    /// The same as -o json
    #[arg(long, global = true, conflicts_with = "output")]
    json: bool,

    /// Print the version
    #[arg(short = 'v', short_alias = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Host the agents of a workspace
    Serve(ConfigFlags),
    #[command(flatten)]
    Calling(Box<CallingCommand>),
    #[command(flatten)]
    Hub(Box<HubCommand>),
    /// Make, list and revoke API keys
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Look after webhooks: deliveries, dead letters, secrets
    #[command(subcommand)]
    Webhooks(WebhooksCommand),
    /// Check, back up or restore the data
    #[command(subcommand)]
    Db(DbCommand),
    /// Say whether a server runs on the data, and which
    Status(DataFlags),
    /// Look whether agents have the programs, logins and folders they need, and say how to mend it
    #[command(after_help = DOCTOR)]
    Doctor(ConfigFlags),
    /// Check the configuration of a server, apply it, print its schema; show the settings of calls
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

/// What stands under the help of `doctor`.
const DOCTOR: &str = "\
Run it as the account and with the variables that the server has, since both decide what programs see. It makes no network call: \
whether a program is logged in shows by its keys and files alone. No secret is printed.\n\
Exit codes: 0 no problem, even if there are warnings; 1 a problem; 2 typed wrongly; 130 Ctrl-C.";

/// What stands under the help of `config show`.
const SHOW: &str = "\
A flag wins over a variable of the environment, that over the file that --config names, \
that over ~/.config/a2a-cli/.env, and that over what is usual. In the files a setting has the \
variable's name, one A2ACLI_NAME=value a line. Secrets are not shown. The settings of a server are another matter: \
see switchboard config check.";

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Read the configuration and say what is in force and where it comes from
    Check(ConfigFlags),
    /// Have the running server read it again, as SIGHUP does, and apply what needs no restart
    Reload(DataFlags),
    /// Say what is in force for commands that call agents, and where each setting comes from
    #[command(after_help = SHOW)]
    Show(Box<CallFlags>),
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
    Create(OnData<commands::keys::create::CreateKeyOptions>),
    /// List all keys, without their secrets
    List(DataFlags),
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
    /// Look for damage in the data file, or in a backup; changes nothing
    Check {
        /// Backup to check, in place of the data of the workspace
        file: Option<PathBuf>,
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
    /// Put a backup in the place of the data file, while no server runs; the data from before is kept beside it
    Restore {
        /// File that db backup has written
        file: PathBuf,
        #[command(flatten)]
        flags: DataFlags,
    },
}

/// What was typed for a command on the data of a workspace.
#[derive(Debug, Args)]
pub(crate) struct OnData<O: Args> {
    #[command(flatten)]
    options: O,
    #[command(flatten)]
    flags: DataFlags,
}

/// The flags of every command that needs the data of a workspace and listens nowhere.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DataFlags {
    /// Workspace folder, which holds switchboard.yaml and agents.yaml
    #[arg(long, value_name = "DIR", env = "SWITCHBOARD_WORKSPACE", default_value = ".")]
    pub(crate) workspace: PathBuf,

    /// Data directory (store.dataDir)
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

impl DataFlags {
    /// Loads the workspace under these flags and this process's environment.
    pub(crate) fn load(&self) -> Result<FleetConfig, Problems> {
        let flags = ConfigFlags { workspace: self.workspace.clone(), bind: None, data_dir: self.data_dir.clone() };
        FleetConfig::load(&flags.workspace, &flags.overrides())
    }

    /// Loads the settings of its server alone.
    pub(crate) fn load_settings(&self) -> Result<Workspace, Problems> {
        let flags = ConfigFlags { workspace: self.workspace.clone(), bind: None, data_dir: self.data_dir.clone() };
        FleetConfig::settings(&flags.workspace, &flags.overrides())
    }

    /// The same flags for another command, each with a space in front.
    pub(crate) fn again(&self) -> String {
        let mut again = String::new();
        if self.workspace != Path::new(".") {
            again.push_str(&format!(" --workspace {}", shell_path(&self.workspace)));
        }
        if let Some(data_dir) = &self.data_dir {
            again.push_str(&format!(" --data-dir {}", shell_path(data_dir)));
        }
        again
    }
}

/// Runs the program with the arguments it was started with.
pub fn run() -> ExitCode {
    let code = run_typed().err().unwrap_or(ExitCode::SUCCESS);
    // Output that could not be written is a failure.
    if code == ExitCode::SUCCESS && printer::has_lost_output() { ExitCode::FAILURE } else { code }
}

fn run_typed() -> Result<(), ExitCode> {
    let (command_line, settings) = parsed()?;
    let output = form(&command_line, settings.as_ref());
    let printer = Printer::new(output.map_err(|failure| failure.print(Printer::new(usage_errors::typed_output())))?);
    for warning in settings.iter().flat_map(|settings| settings.warnings(&CommandLine::command())) {
        printer.warning(&warning);
    }
    match command_line.command {
        Command::Calling(command) => command.run(printer),
        Command::Hub(command) => command.run(printer),
        Command::Completion { shell } => commands::calling::completion::run(shell, CommandLine::command(), printer),
        Command::Config(ConfigCommand::Check(flags)) => commands::config::check::run(&flags, printer),
        Command::Config(ConfigCommand::Reload(flags)) => commands::config::reload::run(&flags, printer),
        Command::Config(ConfigCommand::Show(flags)) => commands::config::show::run(&flags, printer),
        Command::Config(ConfigCommand::Schema { file }) => commands::config::schema::run(file, printer),
        Command::Doctor(flags) => commands::doctor::run(&flags, printer),
        Command::Serve(flags) => commands::serve::run(&flags, printer),
        Command::Keys(KeysCommand::Create(OnData { options, flags })) => {
            commands::keys::create::run(&flags, options, printer)
        }
        Command::Keys(KeysCommand::List(flags)) => commands::keys::list::run(&flags, printer),
        Command::Keys(KeysCommand::Revoke { id, flags }) => commands::keys::revoke::run(&flags, id, printer),
        Command::Webhooks(command) => command.run(printer),
        Command::Db(DbCommand::Check { file, flags }) => commands::db::check::run(&flags, file.as_deref(), printer),
        Command::Db(DbCommand::Backup { file, flags }) => commands::db::backup::run(&flags, &file, printer),
        Command::Db(DbCommand::Restore { file, flags }) => commands::db::restore::run(&flags, &file, printer),
        Command::Status(flags) => commands::status::run(&flags, printer),
        Command::Version => commands::version::run(printer),
    }
}

/// The output form. A flag wins over the setting for all commands.
fn form(command_line: &CommandLine, settings: Option<&Settings>) -> Result<Output, commands::calling::Failure> {
    let is_quiet = matches!(&command_line.command, Command::Calling(command) if command.is_quiet());
    match (command_line.json, command_line.output) {
        (true, _) => return Ok(Output::Json),
        (false, Some(output)) => return Ok(output),
        (false, None) if is_quiet => return Ok(Output::Text),
        (false, None) => {}
    }
    let Some((value, source)) = settings.and_then(|settings| settings.value("A2ACLI_OUTPUT")) else {
        return Ok(Output::Text);
    };
    let wrong = |_| settings::wrong_value("A2ACLI_OUTPUT", &value, &source, "write text or json");
    Output::from_str(&value, false).map_err(wrong)
}

/// The command line with the settings of the files as defaults, or the exit code of help, version and usage errors.
fn parsed() -> Result<(CommandLine, Option<Settings>), ExitCode> {
    let words = usage_errors::words();
    let matches = CommandLine::command().try_get_matches_from(&words).map_err(not_run)?;
    let printed = |failure: commands::calling::Failure| failure.print(Printer::new(usage_errors::typed_output()));
    let Some(settings) = Settings::of(&matches).map_err(printed)? else {
        return command_line(&matches).map(|command_line| (command_line, None));
    };
    let command = settings.apply(CommandLine::command()).map_err(printed)?;
    let matches = command.try_get_matches_from(&words).map_err(not_run)?;
    command_line(&matches).map(|command_line| (command_line, Some(settings)))
}

fn command_line(matches: &ArgMatches) -> Result<CommandLine, ExitCode> {
    CommandLine::from_arg_matches(matches).map_err(|message| not_run(message.format(&mut CommandLine::command())))
}

/// Prints help, the version or a usage error; a closed terminal does not change the exit code.
fn not_run(message: clap::Error) -> ExitCode {
    match message.kind() {
        // The command prints more than the number.
        ErrorKind::DisplayVersion => commands::version::run(Printer::new(Output::Text)).err().unwrap_or_default(),
        _ if message.use_stderr() => usage_errors::print(message, &CommandLine::command()),
        _ => {
            printer::record_result(message.print().and_then(|()| std::io::stdout().flush()));
            ExitCode::SUCCESS
        }
    }
}
