//! The flags of every command that calls an agent, by the names that A2A command lines have agreed on.

use std::path::Path;

use clap::Args;
use http::HeaderName;
use switchboard_a2a::Version;
use switchboard_client::{Binding, Secret};

use crate::cli::DataFlags;
use crate::config::time_span::TimeSpan;
use crate::config::value::Scalar;

/// How to call an agent.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "How to call it")]
pub struct CallFlags {
    /// The agent, in place of the first word: a URL, or a name of the workspace
    #[arg(short = 'a', long, value_name = "AGENT", env = "A2ACLI_AGENT_CARD")]
    pub agent_card: Option<String>,

    /// Bearer token to send. Safer in the variable A2ACLI_BEARER, which others on this machine cannot see
    #[arg(long, value_name = "TOKEN", value_parser = secret)]
    pub bearer: Option<Secret>,

    /// API key to send. Safer in the variable A2ACLI_API_KEY
    #[arg(long, value_name = "KEY", value_parser = secret)]
    pub api_key: Option<Secret>,

    /// Header that the API key is sent in
    #[arg(long, value_name = "NAME", env = "A2ACLI_API_KEY_HEADER", default_value = "X-API-Key")]
    pub api_key_header: HeaderName,

    /// Header to send; can be repeated
    #[arg(long = "header", value_name = "NAME:VALUE")]
    pub headers: Vec<String>,

    /// Service parameter to send, which is a header here; can be repeated
    #[arg(long = "svc-param", value_name = "NAME:VALUE")]
    pub service_parameters: Vec<String>,

    /// Way to carry requests, jsonrpc or http+json; without it the first that the agent offers
    #[arg(long, value_name = "BINDING", env = "A2ACLI_TRANSPORT", value_parser = binding)]
    pub transport: Option<Binding>,

    /// Version of the protocol, 1.0 or 0.3; without it the newest that the agent offers
    #[arg(long, value_name = "VERSION", env = "A2ACLI_A2A_VERSION", value_parser = version)]
    pub a2a_version: Option<Version>,

    /// Tenant to name, where one address serves many agents
    #[arg(long, value_name = "NAME", env = "A2ACLI_TENANT")]
    pub tenant: Option<String>,

    /// Time for all of it, such as 30s; the agent may go on after that
    #[arg(long, value_name = "TIME", env = "A2ACLI_TIMEOUT", value_parser = time)]
    pub timeout: Option<TimeSpan>,

    /// Follow the addresses on the agent's card to other hosts; without it they are looked for where the card is
    #[arg(long)]
    pub trust_card_url: bool,

    /// Id that ties this call to others in logs, sent as X-Correlation-Id
    #[arg(long, value_name = "ID", env = "A2ACLI_CORRELATION_ID")]
    pub correlation_id: Option<String>,

    /// The workspace, for agents that are called by name
    #[command(flatten)]
    pub workspace: DataFlags,
}

impl CallFlags {
    /// The flags that the next command needs too, each with a space in front of it. Secrets are not repeated.
    #[must_use]
    pub fn again(&self) -> String {
        let mut again = String::new();
        if self.workspace.workspace != Path::new(".") {
            again.push_str(&format!(" --workspace {}", self.workspace.workspace.display()));
        }
        if let Some(data_dir) = &self.workspace.data_dir {
            again.push_str(&format!(" --data-dir {}", data_dir.display()));
        }
        again
    }
}

#[expect(clippy::unnecessary_wraps, reason = "clap wants a parser that could fail")]
fn secret(text: &str) -> Result<Secret, String> {
    Ok(Secret::Plain(text.to_owned()))
}

fn binding(text: &str) -> Result<Binding, String> {
    Binding::from_name(text).ok_or_else(|| "write jsonrpc or http+json".to_owned())
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "1.0" | "1" => Ok(Version::V1),
        "0.3" | "0.3.0" => Ok(Version::V03),
        _ => Err("write 1.0 or 0.3".to_owned()),
    }
}

/// Reads a time that leaves time for something.
pub(crate) fn time(text: &str) -> Result<TimeSpan, String> {
    match TimeSpan::from_text(text) {
        Ok(TimeSpan::ZERO) => Err("0s leaves no time at all: write a time, such as 30s".to_owned()),
        Ok(span) => Ok(span),
        Err(mismatch) => Err(format!("{}: {}", mismatch.wrong, mismatch.right)),
    }
}
