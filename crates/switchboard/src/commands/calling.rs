//! The client commands. Each resolves the agent, makes its requests and prints the reply; [`failure`] prints all errors.
//!
//! The commands follow the published conventions of A2A command lines with one exception: they use 0.3 without being
//! told to with agents that have nothing newer, because many agents have not.

pub(crate) mod agents;
mod answer;
pub(crate) mod api_key_location;
pub(crate) mod auth;
mod caller_identity;
pub(crate) mod card;
pub(crate) mod ceremonies;
pub(crate) mod chat;
pub(crate) mod completion;
pub(crate) mod conformance;
mod credential_guard;
mod debug;
pub(crate) mod dispatch;
mod failure;
pub(crate) mod feed;
mod figures;
mod follow;
pub(crate) mod health;
mod hub_client;
pub(crate) mod inbox;
mod interrupt;
mod line_breaks;
mod media_type;
mod message;
mod parts;
pub(crate) mod plan;
mod printed_artifacts;
mod progress;
pub(crate) mod routes;
pub(crate) mod send;
pub(crate) mod skills;
mod stream_printer;
mod target;
pub(crate) mod task;
pub(super) mod task_output;

pub(crate) use failure::Failure;
pub(super) use interrupt::INTERRUPTED;
pub(crate) use switchboard_host::sanitize;

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use http::{HeaderName, HeaderValue};
use serde::Serialize;
use switchboard_a2a::ErrorKind;
use switchboard_client::{CallContext, Client, ClientError, Credentials, FoundCard, Peer};
use switchboard_egress::{Egress, Options, RootFileError, SetupError, check_ssl_cert_file, read_roots};
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::printer::{Output, Printer};
use tokio::time::Instant;

use crate::cli::{API_KEY_HEADER, CallFlags, Transport};
use crate::commands::short;
use caller_identity::CallerIdentity;
use credential_guard::CredentialGuard;
use target::Target;

const WRITE_A_URL: &str = "write a URL such as https://agent.example";

const CONFIG_SHOW: &str = "switchboard config show says where it comes from";

/// As good as no limit.
const A_DAY: Duration = Duration::from_hours(24);

/// Accepted for scripts that pass it to every command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OneLine {
    /// With -o json, print it on one line
    #[arg(long, hide = true)]
    stream: bool,
}

impl OneLine {
    fn print(&self, value: &impl Serialize, printer: Printer) {
        match self.stream {
            true => printer.json_line(value),
            false => printer.json(value),
        }
    }
}

/// What was typed for a command that calls an agent: which one, what is wanted of it, and how to call it.
#[derive(Debug, clap::Args)]
pub(crate) struct Call<W: Args, O: Args> {
    #[command(flatten)]
    words: W,
    #[command(flatten)]
    pub(crate) options: O,
    #[command(flatten)]
    pub(crate) flags: Box<CallFlags>,
}

/// For commands that have no options of their own.
#[derive(Debug, clap::Args)]
pub(crate) struct NoOptions {}

impl<W: Args + Into<Vec<String>>, O: Args> Call<W, O> {
    /// Runs a command on a client for the agent. `names` says what the words after the agent are.
    pub(crate) fn open<const WORDS: usize>(
        self,
        names: [&str; WORDS],
        printer: Printer,
        command: impl AsyncFnOnce(AgentCall<'_>, [String; WORDS], O) -> Result<(), Failure>,
    ) -> Result<(), ExitCode> {
        run(printer, async {
            let (agent, words) = agent_and_words(self.words.into(), &self.flags, names)?;
            command(AgentCall::open(&agent, &self.flags, printer).await?, words, self.options).await
        })
    }
}

/// Runs the async part of a command and prints its failure.
pub(super) fn run(printer: Printer, work: impl Future<Output = Result<(), Failure>>) -> Result<(), ExitCode> {
    short(printer, work)?.map_err(|failure| failure.print(printer))
}

fn agent_and_words<const WORDS: usize>(
    words: Vec<String>,
    flags: &CallFlags,
    names: [&str; WORDS],
) -> Result<(String, [String; WORDS]), Failure> {
    let (agent, words) = agent_and_rest(words, flags)?;
    let (found, given) = (words.len(), agent.clone());
    words.try_into().map(|words| (agent, words)).map_err(|_| {
        let problem = match names.get(found) {
            Some(missing) => format!("{missing} is missing"),
            None => "there are too many words".to_owned(),
        };
        if found > WORDS && flags.agent_card.as_ref() == Some(&given) {
            let set = "the agent is set already, by --agent-card, the variable A2ACLI_AGENT_CARD or a file";
            let next = format!("leave the agent out, or write its URL; {CONFIG_SHOW}");
            return Failure::usage(format!("{problem}: {set} ({})", sanitize::line(&given)), next);
        }
        Failure::usage(problem, "--help shows what is expected")
    })
}

/// The same for any number of remaining words.
fn agent_and_rest(words: Vec<String>, flags: &CallFlags) -> Result<(String, Vec<String>), Failure> {
    let mut words = words.into_iter().peekable();
    // A typed URL wins over an agent that is set for all calls.
    let is_meant = |word: &String| !flags.origins.is_typed("agent_card") && is_url(word);
    let agent = match words.next_if(is_meant) {
        Some(url) => Some(url),
        None => flags.agent_card.clone().or_else(|| words.next()).filter(|agent| !agent.is_empty()),
    };
    let agent = agent.ok_or_else(|| {
        let next = "name a URL, or an agent of the workspace; switchboard agents lists those";
        Failure::usage("it is not said which agent to call", next)
    });
    Ok((agent?, words.collect()))
}

fn is_url(word: &str) -> bool {
    let word = word.trim().to_ascii_lowercase();
    let starts = ["http://", "https://", "file:", "localhost:", "127."].iter().any(|start| word.starts_with(start));
    starts && !word.contains(char::is_whitespace)
}

/// A client for one agent, with the options of the command.
pub(crate) struct AgentCall<'a> {
    flags: &'a CallFlags,
    printer: Printer,
    client: Client,
    egress: Egress,
    context: CallContext,
    /// The flags and the name of the agent, for the next command to type.
    again: String,
    deadline: Option<(Instant, Duration)>,
    identity: CallerIdentity,
    is_local: bool,
}

impl<'a> AgentCall<'a> {
    async fn open(agent: &str, flags: &'a CallFlags, printer: Printer) -> Result<Self, Failure> {
        let Target { mut peer, mut roots, certificate, is_local, card } = target::find(agent, &flags.workspace).await?;
        let guard = CredentialGuard::new(&peer, flags)?;
        if !peer.headers.is_empty() {
            guard.stored("agents.yaml")?;
        }
        peer.headers.extend(headers(&flags.headers, "--header")?);
        peer.headers.extend(headers(&flags.service_parameters, "--svc-param")?);
        let mut identity = CallerIdentity::of(&mut peer, flags, &guard)?;
        negotiate(&mut peer, flags);
        let limit = flags.timeout.map(TimeSpan::duration).or(peer.limits.total.take());
        // The typed timeout applies to each request too; without one the user can press Ctrl-C.
        peer.limits.answer = limit.unwrap_or(A_DAY);
        peer.limits.head = limit.unwrap_or(peer.limits.head);
        warn(flags, &identity);
        let unverified = flags.insecure;
        if !unverified {
            check_ssl_cert_file().map_err(|error| unusable_roots(&error, "SSL_CERT_FILE"))?;
        }
        let named = flags.ca.as_deref().map(read_roots).transpose();
        roots.extend(named.map_err(|error| unusable_roots(&error, CA))?.unwrap_or_default());
        let options = Options {
            anywhere: true,
            idle_per_host: 8,
            extra_roots: roots,
            identity: certificate,
            unverified,
            ..Options::default()
        };
        let egress = Egress::new(options).map_err(|error| match (&error, &flags.ca) {
            (SetupError::Root { .. }, Some(file)) => {
                let error = RootFileError { file: file.clone(), why: error.to_string() };
                unusable_roots(&error, CA)
            }
            _ => Failure::internal(error.to_string()),
        })?;
        // A token that was kept is for this agent's host alone, whatever host a trusted card names.
        peer.pins_credentials = matches!(identity, CallerIdentity::Anonymous);
        let client = match card {
            Some(card) => Client::with_card(egress.clone(), peer, card),
            None => Client::new(egress.clone(), peer),
        };
        let client = client.map_err(|error| Failure::usage(error.to_string(), WRITE_A_URL))?;
        let mut context = CallContext { correlation_id: flags.correlation_id.clone(), ..CallContext::default() };
        if matches!(identity, CallerIdentity::Anonymous)
            && let Some(token) = auth::kept(&address(&client)?, &egress, flags, &guard).await?
        {
            (identity, context.credentials) = CallerIdentity::with_token(&token);
        }
        if flags.debug {
            debug::start(identity.secrets(client.peer()));
        }
        let mut call = Self {
            flags,
            printer,
            client,
            egress,
            context,
            again: format!("{}{}", flags.again(), agent_again(agent, flags)),
            deadline: limit.map(|limit| (Instant::now() + limit, limit)),
            identity,
            is_local,
        };
        if !flags.origins.differs("api_key_header", API_KEY_HEADER)
            && matches!(call.client.peer().credentials, Credentials::ApiKey { .. })
        {
            let found = call.ask(call.client.card(&call.context)).await;
            // An agent without a card can be called at `--endpoint`.
            let card = if flags.endpoint.is_some() { found.ok() } else { Some(found?) };
            if let Some(found) = card
                && let Some(credentials) = caller_identity::as_the_card_wants(&found.card, call.client.peer())?
            {
                // What is known of the agent is kept, so that its card is not fetched a second time.
                let peer = Peer { credentials, ..call.client.peer().clone() };
                let known = Client::with_card(call.egress.clone(), peer, (*found).clone());
                call.client = known.map_err(|error| Failure::usage(error.to_string(), WRITE_A_URL))?;
            }
        }
        Ok(call)
    }

    fn address(&self) -> Result<String, Failure> {
        address(&self.client)
    }

    /// Waits for a reply until the deadline.
    async fn ask<T>(&self, work: impl Future<Output = Result<T, ClientError>>) -> Result<T, Failure> {
        let asked = tokio::select! {
            answer = work => answer,
            error = self.time_is_up() => Err(error),
        };
        match asked {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.failed(&error).await),
        }
    }

    /// Resolves at the deadline of the command; never without one.
    async fn time_is_up(&self) -> ClientError {
        let Some((deadline, after)) = self.deadline else { return std::future::pending().await };
        tokio::time::sleep_until(deadline).await;
        ClientError::Timeout { origin: self.client.peer().url.clone(), after, task: None }
    }

    /// The failure for a client error, with the card if credentials were refused.
    async fn failed(&self, error: &ClientError) -> Failure {
        let is_refused = matches!(error, ClientError::Credentials { .. })
            || matches!(error.error_kind(), Some(ErrorKind::Unauthenticated | ErrorKind::PermissionDenied));
        let known = if is_refused { self.client.card(&self.context).await.ok() } else { None };
        Failure::of_call(error, self, known.as_deref().map(|found: &FoundCard| &found.card))
    }

    fn command(&self, command: &str, rest: &str) -> String {
        format!("switchboard {command}{} {rest}", self.again).trim_end().to_owned()
    }
}

/// The agent as the next command has to name it, with a space in front: what is set for all of them is not repeated.
fn agent_again(agent: &str, flags: &CallFlags) -> String {
    match (flags.agent_card.as_deref() == Some(agent), flags.origins.is_typed("agent_card")) {
        (true, true) => format!(" -a {}", sanitize::shell_word(agent)),
        (true, false) => String::new(),
        (false, _) => format!(" {}", sanitize::shell_word(agent)),
    }
}

/// Binding, version and address from the flags.
fn negotiate(peer: &mut Peer, flags: &CallFlags) {
    peer.preferred = flags.transports.iter().filter_map(Transport::binding).collect();
    if let (true, [binding]) = (flags.is_pinned, peer.preferred.as_slice()) {
        peer.binding = Some(*binding);
    }
    peer.version = flags.a2a_version;
    peer.tenant.clone_from(&flags.tenant);
    peer.trust_card_url |= flags.trust_card_url;
    peer.endpoint.clone_from(&flags.endpoint);
    peer.limits.poll = flags.poll_interval.map(TimeSpan::duration);
}

/// What names the file of certificates to trust besides the system's.
const CA: &str = "--ca or A2ACLI_CA";

fn unusable_roots(error: &RootFileError, named_by: &str) -> Failure {
    Failure::usage(error.to_string(), format!("name a file of certificates in PEM with {named_by}"))
}

/// Warns on standard error of probable mistakes.
fn warn(flags: &CallFlags, identity: &CallerIdentity) {
    let printer = Printer::new(Output::Text);
    for transport in &flags.transports {
        if let Transport::Other(name) = transport {
            printer.warning(&format!("{name} is not spoken here and is passed over"));
        }
    }
    match (flags.insecure, identity) {
        (false, _) => {}
        (true, CallerIdentity::Anonymous) => {
            printer.warning("certificates are not checked: any server may be the one that answers")
        }
        (true, _) => {
            printer.warning("certificates are not checked and CREDENTIALS ARE SENT: any server that answers gets them")
        }
    }
}

fn address(client: &Client) -> Result<String, Failure> {
    client.peer().address().map_err(|error| Failure::usage(error.to_string(), WRITE_A_URL))
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
        if parsed.as_ref().is_ok_and(api_key_location::frames) {
            return Err(wrong(format!("{name} is for the connection to say, and not for a {flag}")));
        }
        let value = HeaderValue::from_str(value.trim());
        let mut value = value.map_err(|_| wrong(format!("the value of {name} cannot stand in a header")))?;
        value.set_sensitive(true);
        headers.push((parsed?, value));
    }
    Ok(headers)
}
