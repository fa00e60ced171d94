//! The flags of every command that calls an agent, by the names that A2A command lines have agreed on.

use std::path::PathBuf;

use clap::ArgAction::SetTrue;
use clap::Args;
use http::HeaderName;
use switchboard_a2a::Version;
use switchboard_client::{Binding, Secret};
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::config::value::Scalar;
use switchboard_host::sanitize::shell_word;

use crate::cli::DataFlags;
use crate::cli::origins::Origins;
use crate::commands::calling::api_key_location;

pub(crate) const API_KEY_HEADER: &str = "X-API-Key";

/// Flags with a value that decide which agent is called and how, and that hold no secrets.
const AGAIN: [(&str, &str); 7] = [
    ("endpoint", "endpoint"),
    ("api_key_header", "api-key-header"),
    ("transports", "transport"),
    ("a2a_version", "a2a-version"),
    ("tenant", "tenant"),
    ("config", "config"),
    ("ca", "ca"),
];

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "How to call it")]
pub(crate) struct CallFlags {
    /// Where each of the others comes from. First, because the others are taken out of what was parsed.
    #[command(flatten)]
    pub(crate) origins: Origins,

    /// The agent, in place of the first word: a URL, a file that holds its card, or a name of the workspace
    #[arg(short = 'a', long, value_name = "AGENT", env = "A2ACLI_AGENT_CARD", hide_env_values = true)]
    pub(crate) agent_card: Option<String>,

    /// Address to send requests to, in place of the one on the agent's card
    #[arg(long, value_name = "URL", env = "A2ACLI_ENDPOINT", hide_env_values = true)]
    pub(crate) endpoint: Option<String>,

    /// Token that proves who you are (Authorization: Bearer). Others on this machine can see what is typed, and the shell
    /// remembers it: the variable is safer
    #[arg(long, value_name = "TOKEN", env = "A2ACLI_BEARER", hide_env_values = true, allow_hyphen_values = true,
        value_parser = secret)]
    pub(crate) bearer: Option<Secret>,

    /// Key that proves who you are, sent where the agent's card wants it. Safer in the variable, as above
    #[arg(long, value_name = "KEY", env = "A2ACLI_API_KEY", hide_env_values = true, allow_hyphen_values = true,
        value_parser = secret)]
    pub(crate) api_key: Option<Secret>,

    /// Header that the API key is sent in; without it the one that the card names, else X-API-Key
    #[arg(long, value_name = "NAME", env = "A2ACLI_API_KEY_HEADER", hide_env_values = true, default_value = API_KEY_HEADER,
        hide_default_value = true, value_parser = key_header)]
    pub(crate) api_key_header: HeaderName,

    /// HTTP header to send with every request; can be repeated
    #[arg(long = "header", value_name = "NAME:VALUE")]
    pub(crate) headers: Vec<String>,

    /// Parameter for the agent's server (a service parameter), sent beside the message as a header; can be repeated
    #[arg(long = "svc-param", value_name = "NAME:VALUE", env = "A2ACLI_SVC_PARAM", hide_env_values = true)]
    pub(crate) service_parameters: Vec<String>,

    /// Way to carry requests, jsonrpc or http+json, the best first; can be repeated. Without it, or if the agent has none
    /// of them, the first that its card lists
    #[arg(long = "transport", value_name = "BINDING", env = "A2ACLI_TRANSPORT", hide_env_values = true, value_parser = transport,
        value_delimiter = ',')]
    pub(crate) transports: Vec<Transport>,

    /// Version of the protocol, 1.0 or 0.3; without it the newest that the agent has
    #[arg(long, value_name = "VERSION", env = "A2ACLI_A2A_VERSION", hide_env_values = true, value_parser = version)]
    pub(crate) a2a_version: Option<Version>,

    /// Name of the agent (its tenant) where one address serves many; without it what the card says
    #[arg(long, value_name = "NAME", env = "A2ACLI_TENANT", hide_env_values = true)]
    pub(crate) tenant: Option<String>,

    /// Time for all of it, such as 30s or 10m; without it there is no end to waiting. The agent may go on after that
    #[arg(long, value_name = "TIME", env = "A2ACLI_TIMEOUT", hide_env_values = true, value_parser = time)]
    pub(crate) timeout: Option<TimeSpan>,

    /// Time between two looks at a task where the agent cannot stream, such as 2s; without it 500ms at first and up to 10s
    #[arg(long, value_name = "TIME", env = "A2ACLI_POLL_INTERVAL", hide_env_values = true, value_parser = time)]
    pub(crate) poll_interval: Option<TimeSpan>,

    /// Follow the addresses on the agent's card to other hosts; without it they are looked for where the card is
    #[arg(long, env = "A2ACLI_TRUST_CARD_URL", hide_env_values = true, action = SetTrue, value_parser = boolean)]
    pub(crate) trust_card_url: bool,

    /// File with certificates (PEM) to trust besides the system's: the server's own, or of the authority that signed it
    #[arg(long, value_name = "FILE", env = "A2ACLI_CA", hide_env_values = true)]
    pub(crate) ca: Option<PathBuf>,

    /// Do not check the server's certificate (TLS), so that any server may answer. For trying things out
    #[arg(long, env = "A2ACLI_INSECURE", hide_env_values = true, action = SetTrue, value_parser = boolean)]
    pub(crate) insecure: bool,

    /// Id that ties this call to others in logs, sent as X-Correlation-Id
    #[arg(long, value_name = "ID", env = "A2ACLI_CORRELATION_ID", hide_env_values = true)]
    pub(crate) correlation_id: Option<String>,

    /// Show all of what was sent and received, part by part
    #[arg(long, env = "A2ACLI_VERBOSE", hide_env_values = true, action = SetTrue, value_parser = boolean)]
    pub(crate) verbose: bool,

    /// Show on standard error how it is done: requests and answers as they are, times, retries. Secrets are left out
    #[arg(long, env = "A2ACLI_DEBUG", hide_env_values = true, action = SetTrue, value_parser = boolean)]
    pub(crate) debug: bool,

    /// File with these settings, one A2ACLI_NAME=value a line
    #[arg(long, value_name = "FILE", env = "A2ACLI_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,

    /// Whether a single transport is used and no other, for those who look at every interface.
    #[arg(skip)]
    pub(crate) is_pinned: bool,

    /// The workspace, for agents that are called by name
    #[command(flatten)]
    pub(crate) workspace: DataFlags,
}

/// A way to carry requests, by the name that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transport {
    /// One that is spoken here.
    Spoken(Binding),
    /// One that other agents and clients have, and that is passed over.
    Other(&'static str),
}

impl Transport {
    pub(crate) fn binding(&self) -> Option<Binding> {
        match self {
            Self::Spoken(binding) => Some(*binding),
            Self::Other(_) => None,
        }
    }
}

impl CallFlags {
    /// The flags that the next command needs too, each with a space in front of it. Secrets are not repeated.
    pub(crate) fn again(&self) -> String {
        let mut again = self.workspace.again();
        for (id, flag) in AGAIN {
            if let Some(given) = self.origins.given(id).filter(|_| self.origins.is_typed(id)) {
                again.push_str(&format!(" --{flag} {}", shell_word(&given.text)));
            }
        }
        for (id, flag) in [("trust_card_url", "trust-card-url"), ("insecure", "insecure")] {
            if self.origins.is_typed(id) {
                again.push_str(&format!(" --{flag}"));
            }
        }
        again
    }
}

fn key_header(text: &str) -> Result<HeaderName, String> {
    let name = HeaderName::try_from(text).map_err(|_| "it cannot be the name of a header".to_owned())?;
    match api_key_location::frames(&name) {
        true => Err("it is for the connection to say; write a name such as X-API-Key".to_owned()),
        false => Ok(name),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "clap wants a parser that could fail")]
pub(crate) fn secret(text: &str) -> Result<Secret, String> {
    Ok(Secret::Plain(text.to_owned()))
}

/// Reads yes or no, as variables and files say it.
pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" | "y" | "t" => Ok(true),
        "" | "0" | "false" | "no" | "off" | "n" | "f" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

fn transport(text: &str) -> Result<Transport, String> {
    if text.eq_ignore_ascii_case("grpc") {
        return Ok(Transport::Other("grpc"));
    }
    Binding::from_name(text).map(Transport::Spoken).ok_or_else(|| "write jsonrpc or http+json".to_owned())
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "1.0" | "1" => Ok(Version::V1),
        "0.3" | "0.3.0" => Ok(Version::V03),
        _ => Err("write 1.0 or 0.3".to_owned()),
    }
}

/// Reads a value as a configuration file has it.
pub(crate) fn scalar<T: Scalar>(text: &str) -> Result<T, String> {
    T::from_text(text).map_err(|mismatch| format!("{}: {}", mismatch.wrong, mismatch.right))
}

/// Reads a time that leaves time for something.
pub(crate) fn time(text: &str) -> Result<TimeSpan, String> {
    match scalar(text)? {
        TimeSpan::ZERO => Err("0s leaves no time at all: write a time, such as 30s".to_owned()),
        span => Ok(span),
    }
}
