//! The flags of every command that asks the hub of a server.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ArgAction::SetTrue;
use clap::error::Error;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use switchboard_client::Secret;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::sanitize::{shell_path, shell_word};

use crate::cli::{DataFlags, boolean, secret, time};

/// Flags whose source matters: a variable is not repeated in the next command, and a typed secret wins over one.
const IDS: [&str; 6] = ["server", "bearer", "api_key", "ca", "insecure", "config"];

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Which server, and how to ask it")]
pub(crate) struct HubFlags {
    /// Which of the others were typed. First, because the others are taken out of what was parsed.
    #[command(flatten)]
    typed: TypedFlags,

    /// The server, by its URL; without it the one that runs on the data of the workspace
    #[arg(long, value_name = "URL", env = "A2ACLI_SERVER", hide_env_values = true)]
    pub(crate) server: Option<String>,

    /// Key that proves who you are (Authorization: Bearer). Others on this machine can see what is typed, and the shell
    /// remembers it: the variable is safer
    #[arg(long, value_name = "KEY", env = "A2ACLI_BEARER", hide_env_values = true, allow_hyphen_values = true,
        value_parser = secret)]
    bearer: Option<Secret>,

    /// The same, sent as X-API-Key
    #[arg(long, value_name = "KEY", env = "A2ACLI_API_KEY", hide_env_values = true, allow_hyphen_values = true,
        value_parser = secret)]
    api_key: Option<Secret>,

    /// HTTP header to send with every request; can be repeated
    #[arg(long = "header", value_name = "NAME:VALUE")]
    pub(crate) headers: Vec<String>,

    /// Time for each request, such as 30s or 10m; without it 60s
    #[arg(long, value_name = "TIME", env = "A2ACLI_TIMEOUT", hide_env_values = true, value_parser = time)]
    pub(crate) timeout: Option<TimeSpan>,

    /// File with certificates (PEM) to trust besides the system's: the server's own, or of the authority that signed it
    #[arg(long, value_name = "FILE", env = "A2ACLI_CA", hide_env_values = true)]
    pub(crate) ca: Option<PathBuf>,

    /// Do not check the server's certificate (TLS), so that any server may answer. For trying things out
    #[arg(long, env = "A2ACLI_INSECURE", hide_env_values = true, action = SetTrue, value_parser = boolean)]
    pub(crate) insecure: bool,

    /// File with these settings, one A2ACLI_NAME=value a line
    #[arg(long, value_name = "FILE", env = "A2ACLI_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) workspace: DataFlags,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HubCredentials {
    pub(crate) bearer: Option<Secret>,
    pub(crate) api_key: Option<Secret>,
    /// The variable that they come from, if they were not typed.
    pub(crate) variable: Option<&'static str>,
}

impl HubFlags {
    /// The credentials. What is typed wins over variables and files.
    pub(crate) fn credentials(&self) -> HubCredentials {
        let has_flag = self.typed.has("bearer") || self.typed.has("api_key");
        let taken = |secret: &Option<Secret>, id: &str| {
            let is_set = |secret: &Secret| *secret != Secret::Plain(String::new());
            secret.clone().filter(is_set).filter(|_| !has_flag || self.typed.has(id))
        };
        let (bearer, api_key) = (taken(&self.bearer, "bearer"), taken(&self.api_key, "api_key"));
        let variable = match (&bearer, &api_key) {
            _ if has_flag => None,
            (Some(_), _) => Some("A2ACLI_BEARER"),
            (None, Some(_)) => Some("A2ACLI_API_KEY"),
            (None, None) => None,
        };
        HubCredentials { bearer, api_key, variable }
    }

    /// The flags that the next command needs too, each with a space in front of it. Secrets are not repeated.
    pub(crate) fn again(&self) -> String {
        let mut again = self.workspace.again();
        if let Some(server) = self.server.as_ref().filter(|_| self.typed.has("server")) {
            again.push_str(&format!(" --server {}", shell_word(server)));
        }
        for (id, file) in [("config", &self.config), ("ca", &self.ca)] {
            if let Some(file) = file.as_ref().filter(|_| self.typed.has(id)) {
                again.push_str(&format!(" --{id} {}", shell_path(file)));
            }
        }
        if self.typed.has("insecure") {
            again.push_str(" --insecure");
        }
        again
    }
}

/// The flags that were typed, and not set by a variable or a file.
#[derive(Debug, Clone, Default)]
struct TypedFlags(BTreeSet<&'static str>);

impl TypedFlags {
    fn has(&self, id: &str) -> bool {
        self.0.contains(id)
    }
}

impl FromArgMatches for TypedFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let is_typed = |id: &&'static str| matches.value_source(id) == Some(ValueSource::CommandLine);
        Ok(Self(IDS.into_iter().filter(is_typed).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// It has no flags of its own.
impl Args for TypedFlags {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
