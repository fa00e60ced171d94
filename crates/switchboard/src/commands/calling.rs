//! The commands that call agents, here or anywhere else. Each finds the agent, asks it something and prints the answer in
//! the words of the protocol; what goes wrong is told by [`failure`], in one form for all of them.

pub mod agents;
pub mod card;
pub mod chat;
mod clean;
pub mod completion;
pub mod conformance;
mod failure;
mod follow;
mod interrupt;
mod live;
mod media_type;
mod message;
mod progress;
pub mod send;
mod shown;
pub mod skills;
mod target;
pub mod task;

pub(crate) use failure::Failure;

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use switchboard_client::{Client, ClientError, Context, Credentials, Secret};
use switchboard_egress::{Egress, Options};
use tokio::time::Instant;

use crate::cli::CallFlags;
use crate::config::time_span::TimeSpan;
use crate::printer::Printer;
use target::Target;

/// Where secrets are looked for that no flag and no file names.
const BEARER: &str = "A2ACLI_BEARER";
const API_KEY: &str = "A2ACLI_API_KEY";

/// Runs the async part of a command.
fn run(printer: Printer, work: impl Future<Output = Result<ExitCode, Failure>>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return printer.failure(&format!("the system gave no threads to work with: {error}"), ""),
    };
    let code = runtime.block_on(work).unwrap_or_else(|failure| failure.print(printer));
    // Somebody may still wait for a line of standard input that never comes.
    runtime.shutdown_background();
    code
}

/// The agent that is meant, and the words that are left for the command.
fn agent_and_words<const WORDS: usize>(
    words: Vec<String>,
    flags: &CallFlags,
    names: [&str; WORDS],
) -> Result<(String, [String; WORDS]), Failure> {
    let (agent, words) = agent_and_rest(words, flags)?;
    let found = words.len();
    words.try_into().map(|words| (agent, words)).map_err(|_| {
        let problem = match names.get(found) {
            Some(missing) => format!("{missing} is missing"),
            None => "there are too many words".to_owned(),
        };
        Failure::usage(problem, "--help shows what is expected")
    })
}

/// The same where any number of words is left.
fn agent_and_rest(words: Vec<String>, flags: &CallFlags) -> Result<(String, Vec<String>), Failure> {
    let mut words = words.into_iter();
    let agent = flags.agent_card.clone().or_else(|| words.next()).filter(|agent| !agent.is_empty());
    let agent = agent.ok_or_else(|| {
        let next = "name a URL, or an agent of the workspace; switchboard agents lists those";
        Failure::usage("it is not said which agent to call", next)
    });
    Ok((agent?, words.collect()))
}

/// An agent that is being called.
struct Call {
    client: Client,
    egress: Egress,
    context: Context,
    /// The agent as it was typed, and the flags that lead to it, for commands to go on with.
    typed: String,
    again: String,
    deadline: Option<(Instant, Duration)>,
    has_credentials: bool,
    is_local: bool,
}

impl Call {
    async fn open(agent: &str, flags: &CallFlags) -> Result<Self, Failure> {
        let Target { mut peer, roots, is_local } = target::find(agent, &flags.workspace).await?;
        peer.headers.extend(headers(&flags.headers, "--header")?);
        peer.headers.extend(headers(&flags.service_parameters, "--svc-param")?);
        authenticate(&mut peer, flags)?;
        peer.binding = flags.transport;
        peer.version = flags.a2a_version;
        peer.tenant.clone_from(&flags.tenant);
        peer.trust_card_url |= flags.trust_card_url;
        let limit = flags.timeout.map(TimeSpan::duration).or(peer.limits.total.take());
        if let Some(limit) = limit {
            peer.limits.head = peer.limits.head.min(limit);
            // Whoever allows an hour means it.
            peer.limits.answer = limit;
        }
        let has_credentials = !matches!(peer.credentials, Credentials::None) || !peer.headers.is_empty();
        let options = Options { anywhere: true, idle_per_host: 8, extra_roots: roots, ..Options::default() };
        let egress = Egress::new(options).map_err(|error| Failure::internal(error.to_string()))?;
        let client = Client::new(egress.clone(), peer);
        let client =
            client.map_err(|error| Failure::usage(error.to_string(), "write a URL such as https://agent.example"));
        Ok(Self {
            client: client?,
            egress,
            context: Context { correlation_id: flags.correlation_id.clone(), ..Context::default() },
            typed: agent.to_owned(),
            again: flags.again(),
            deadline: limit.map(|limit| (Instant::now() + limit, limit)),
            has_credentials,
            is_local,
        })
    }

    /// Waits for an answer, as long as there is time.
    async fn ask<T>(&self, work: impl Future<Output = Result<T, ClientError>>) -> Result<T, Failure> {
        let asked = tokio::select! {
            answer = work => answer,
            error = self.time_is_up() => Err(error),
        };
        asked.map_err(|error| self.failed(&error))
    }

    /// Comes when the time for the command is over; never if it is not limited.
    async fn time_is_up(&self) -> ClientError {
        let Some((deadline, after)) = self.deadline else { return std::future::pending().await };
        tokio::time::sleep_until(deadline).await;
        ClientError::Timeout { origin: self.client.peer().url.clone(), after, task: None }
    }

    fn failed(&self, error: &ClientError) -> Failure {
        Failure::of_call(error, self)
    }

    /// A command about this agent, to be typed next.
    fn command(&self, command: &str, rest: &str) -> String {
        format!("switchboard {command}{} {} {rest}", self.again, clean::word(&self.typed)).trim_end().to_owned()
    }
}

/// A flag wins over what the workspace says of this agent, and that over variables that are meant for any agent.
fn authenticate(peer: &mut switchboard_client::Peer, flags: &CallFlags) -> Result<(), Failure> {
    let is_named = !matches!(peer.credentials, Credentials::None);
    let of_any = |name: &str| {
        let is_set = std::env::var_os(name).is_some_and(|value| !value.is_empty());
        (is_set && !is_named).then(|| Secret::Environment(name.to_owned()))
    };
    let has_flag = flags.bearer.is_some() || flags.api_key.is_some();
    let bearer = flags.bearer.clone().or_else(|| of_any(BEARER).filter(|_| !has_flag));
    let api_key = flags.api_key.clone().or_else(|| of_any(API_KEY).filter(|_| !has_flag));
    let header = flags.api_key_header.clone();
    match (bearer, api_key) {
        (None, None) => {}
        (None, Some(key)) => peer.credentials = Credentials::ApiKey { header, key },
        (Some(bearer), None) => peer.credentials = Credentials::Bearer(bearer),
        // Some gateways want the one and the agent behind them the other.
        (Some(bearer), Some(key)) => {
            let key = key.read().map_err(|error| Failure::usage(error.to_string(), ""))?;
            let mut value = HeaderValue::from_str(&key)
                .map_err(|_| Failure::usage("the API key cannot stand in a header", "check it for line breaks"))?;
            value.set_sensitive(true);
            peer.headers.push((header, value));
            peer.credentials = Credentials::Bearer(bearer);
        }
    }
    Ok(())
}

/// Reads `NAME:VALUE`. The value may be a secret and is never repeated.
fn headers(typed: &[String], flag: &str) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
    let mut headers = Vec::new();
    for typed in typed {
        let wrong = |problem: String| Failure::usage(problem, format!("write {flag} NAME:VALUE"));
        let Some((name, value)) = typed.split_once(':') else {
            return Err(wrong(format!("a {flag} has no colon")));
        };
        let name = name.trim();
        let parsed = HeaderName::try_from(name).map_err(|_| wrong(format!("{name:?} cannot be the name of a header")));
        let value = HeaderValue::from_str(value.trim());
        let mut value = value.map_err(|_| wrong(format!("the value of {name} cannot stand in a header")))?;
        value.set_sensitive(true);
        headers.push((parsed?, value));
    }
    Ok(headers)
}
