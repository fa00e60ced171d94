//! The program, called as a user would in a shell, with a home of its own so that nothing of this machine's user counts.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::Context as _;
use serde_json::Value;
use switchboard_a2a::Version;
use switchboard_client::Binding;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::run::{Answer, Checked};

/// The variable that webhooks' tokens are read from, and its value.
pub(crate) const TOKEN: (&str, &str) = ("HOOK_TOKEN", "shared");

pub(crate) struct Switchboard {
    program: PathBuf,
    address: String,
    /// The flags that say which interface.
    pin: Vec<String>,
    home: tempfile::TempDir,
}

/// A command that said what went wrong.
#[derive(Debug, thiserror::Error)]
#[error("the command ended with {exit} and {error}")]
pub(crate) struct Refusal {
    pub(crate) exit: i32,
    pub(crate) error: Value,
}

impl Refusal {
    /// The word for what went wrong.
    pub(crate) fn code(&self) -> &str {
        self.error["code"].as_str().unwrap_or_default()
    }
}

impl Switchboard {
    pub(crate) fn new(program: PathBuf, address: &str) -> anyhow::Result<Self> {
        Ok(Self { program, address: address.to_owned(), pin: Vec::new(), home: tempfile::tempdir()? })
    }

    /// The same over one interface of the agent.
    pub(crate) fn pinned(mut self, binding: Binding, version: Version) -> Self {
        let transport = match binding {
            Binding::JsonRpc => "jsonrpc",
            Binding::Rest => "http+json",
        };
        self.pin = ["--transport", transport, "--a2a-version", version.as_str()].map(str::to_owned).into();
        self
    }

    /// A folder to keep files in.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The one document that a command prints.
    pub(crate) async fn json(&self, command: &str, words: &[&str]) -> anyhow::Result<Value> {
        let output = self.done(command, words, "").await?;
        serde_json::from_str(&output).with_context(|| format!("{output:?} is no JSON"))
    }

    /// The document on each line that a command prints.
    pub(crate) async fn lines(&self, command: &str, words: &[&str], input: &str) -> anyhow::Result<Vec<Value>> {
        let output = self.done(command, words, input).await?;
        let read = |line| serde_json::from_str(line).with_context(|| format!("{line:?} is no JSON"));
        output.lines().map(read).collect()
    }

    /// What a command prints that does what it should; a [`Refusal`] if it does not.
    async fn done(&self, command: &str, words: &[&str], input: &str) -> anyhow::Result<String> {
        let output = self.ended(command, words, input).await?;
        let printed = String::from_utf8(output.stdout)?;
        if output.status.success() {
            return Ok(printed);
        }
        let last = printed.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        match (output.status.code(), last) {
            (Some(exit), Some(last)) if last["error"].is_object() => {
                Err(Refusal { exit, error: last["error"].clone() }.into())
            }
            _ => anyhow::bail!("switchboard {command} ended with {}: {printed}{complaints}", output.status),
        }
    }

    /// How a command ends, whichever way.
    pub(crate) async fn ended(&self, command: &str, words: &[&str], input: &str) -> anyhow::Result<Output> {
        let mut process = self.command(command, words);
        let mut child = process.stdin(Stdio::piped()).spawn().with_context(|| self.program.display().to_string())?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).await?;
        }
        Ok(child.wait_with_output().await?)
    }

    /// A command to be started, whose output is read.
    pub(crate) fn command(&self, command: &str, words: &[&str]) -> Command {
        let mut process = Command::new(&self.program);
        process
            .args(command.split(' '))
            .arg(&self.address)
            .args(["-o", "json"])
            .args(&self.pin)
            .args(words)
            .env_clear()
            .env("HOME", self.home())
            .env(TOKEN.0, TOKEN.1)
            .current_dir(self.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        process
    }
}

/// What a refusal says about an operation that need not be there, as with the client.
pub(crate) fn told_by(error: anyhow::Error) -> Checked {
    let refusal: Refusal = error.downcast()?;
    let message = refusal.error["message"].as_str().unwrap_or_default();
    match refusal.code() {
        "ExtendedAgentCardNotConfiguredError"
        | "MethodNotFoundError"
        | "PushNotificationNotSupportedError"
        | "UnsupportedOperationError" => Ok(Answer::Refused),
        // The version has no such operation, which the command knows by itself.
        "A2ACLI_ERR_USAGE" => Ok(Answer::Refused),
        // The agent does not serve such an address.
        "InvalidAgentResponseError" if ["404", "405", "501"].iter().any(|status| message.contains(status)) => {
            Ok(Answer::Refused)
        }
        "InternalError" => Ok(Answer::Broken),
        // The server has closed the connection in place of an answer.
        "A2ACLI_ERR_UNREACHABLE" => Ok(Answer::Broken),
        _ => Err(refusal.into()),
    }
}

/// The words that a command must end with, one of them.
pub(crate) fn refused_with(result: anyhow::Result<Value>, codes: &[&str]) -> Checked {
    let refusal: Refusal = match result {
        Ok(answer) => anyhow::bail!("expected {codes:?}, got {answer}"),
        Err(error) => error.downcast()?,
    };
    if codes.contains(&refusal.code()) && refusal.exit == 1 {
        return Ok(Answer::Given);
    }
    told_by(anyhow::Error::new(refusal).context(format!("expected {codes:?}")))
}
