//! Asks the hub of a server over HTTP: finds the server, adds credentials, and turns refusals into failures with a next step.

mod refusal;

pub(super) use refusal::{HubError, Refusal};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use rustls::pki_types::CertificateDer;
use serde_json::Value;
use switchboard_client::Secret;
use switchboard_egress::{BodyEnd, Egress, Options, ResponseBody, check_ssl_cert_file, read_roots};
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::printer::{Output, Printer};
use url::Url;

use super::{CA, Failure, headers, sanitize, target, unusable_roots};
use crate::cli::{API_KEY_HEADER, HubFlags};

/// Enough for every endpoint: those that look at an agent elsewhere give it a few seconds.
const REQUEST: Duration = Duration::from_secs(60);
/// A page of a hundred agents with all their skills.
const LARGEST_ANSWER: usize = 64 << 20;

/// A client for the hub of one server. Clones share the connections.
#[derive(Clone)]
pub(super) struct HubClient {
    pub(super) flags: Arc<HubFlags>,
    egress: Egress,
    base: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether it is the server of the workspace.
    pub(super) is_local: bool,
    /// How long the server is asked to keep an answer back.
    waits: Duration,
}

/// Where a server is, and what to trust it by.
struct Found {
    base: String,
    roots: Vec<CertificateDer<'static>>,
    is_local: bool,
}

impl HubClient {
    pub(super) async fn open(flags: &HubFlags) -> Result<Self, Failure> {
        refuse_in_a_task(flags)?;
        let found = match &flags.server {
            Some(server) => Found { base: with_scheme(server), roots: Vec::new(), is_local: false },
            None => of_workspace(flags).await?,
        };
        Self::at(found, flags)
    }

    fn at(found: Found, flags: &HubFlags) -> Result<Self, Failure> {
        let Found { base, mut roots, is_local } = found;
        let is_http = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let base = Url::parse(&base).ok().filter(is_http).ok_or_else(|| {
            Failure::usage(format!("{base:?} is no address of a server"), "write --server http://127.0.0.1:41242")
        })?;
        if !flags.insecure {
            check_ssl_cert_file().map_err(|error| unusable_roots(&error, "SSL_CERT_FILE"))?;
        }
        if let Some(file) = &flags.ca {
            roots.extend(read_roots(file).map_err(|error| unusable_roots(&error, CA))?);
        }
        let options = Options { anywhere: true, extra_roots: roots, unverified: flags.insecure, ..Options::default() };
        let egress = Egress::new(options).map_err(|error| Failure::internal(error.to_string()))?;
        let mut sent = headers(&flags.headers, "--header")?;
        let credentials = flags.credentials();
        if let Some(secret) = &credentials.bearer {
            sent.push((AUTHORIZATION, secret_value(secret, "Bearer ")?));
        }
        if let Some(secret) = &credentials.api_key
            && let Ok(name) = HeaderName::try_from(API_KEY_HEADER)
        {
            sent.push((name, secret_value(secret, "")?));
        }
        Ok(Self { flags: Arc::new(flags.clone()), egress, base, headers: sent, is_local, waits: Duration::ZERO })
    }

    /// The same for a request that the server answers only after a while.
    pub(super) fn waiting(self, waits: Duration) -> Self {
        Self { waits, ..self }
    }

    /// The address of a path below the server's base, each segment escaped.
    pub(super) fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        // Only an address without a host has no segments.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// The address of an agent at this server.
    pub(super) fn agent_address(&self, name: &str) -> String {
        self.url(&["a2a", name]).into()
    }

    pub(super) fn base(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The answer to a GET, or the failure of the command.
    pub(super) async fn get(&self, url: Url) -> Result<Value, Failure> {
        self.call(Method::GET, url, None).await.map_err(|error| error.failure(self))
    }

    /// The answer to a request; one in an envelope without it.
    pub(super) async fn call(&self, method: Method, url: Url, body: Option<&Value>) -> Result<Value, HubError> {
        let response = self.open_response(method, url, body, &[(ACCEPT, "application/json")]).await?;
        let status = response.status();
        let (bytes, end) = response.into_body().collect(LARGEST_ANSWER, self.timeout()).await;
        let broken = match end {
            BodyEnd::Complete => None,
            BodyEnd::Cut => Some("is too large"),
            BodyEnd::Broken => Some("was cut in the middle"),
            BodyEnd::Late => Some("did not come in time"),
        };
        if let Some(problem) = broken {
            let message = format!("the answer of {} {problem}", self.base());
            return Err(Failure::unreachable(message, "look at the server, and try again").into());
        }
        if bytes.is_empty() && status.is_success() {
            return Ok(Value::Null);
        }
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(mut value) if status.is_success() => {
                let is_enveloped = value["success"] == true;
                Ok(if is_enveloped { value["data"].take() } else { value })
            }
            Ok(value) => Err(Refusal::of(status, value).into()),
            Err(_) if status.is_success() => Err(self.no_hub().into()),
            Err(_) => Err(Refusal::of(status, Value::Null).into()),
        }
    }

    /// Sends a request and returns as soon as its response begins.
    pub(super) async fn open_response(
        &self,
        method: Method,
        url: Url,
        body: Option<&Value>,
        more: &[(HeaderName, &str)],
    ) -> Result<Response<ResponseBody>, HubError> {
        let mut request = Request::builder().method(method).uri(url.as_str());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        for (name, value) in more {
            request = request.header(name, *value);
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let request = request.body(bytes).map_err(|error| Failure::internal(error.to_string()))?;
        let sent = self.egress.open(request, self.timeout()).await;
        sent.map_err(|error| Failure::of_server(&error, self.base()).into())
    }

    /// The refusal that a response is.
    pub(super) async fn refused(&self, response: Response<ResponseBody>) -> HubError {
        let status = response.status();
        let (bytes, _) = response.into_body().collect(LARGEST_ANSWER, self.timeout()).await;
        Refusal::of(status, serde_json::from_slice(&bytes).unwrap_or_default()).into()
    }

    fn timeout(&self) -> Duration {
        self.flags.timeout.map_or(REQUEST, TimeSpan::duration).saturating_add(self.waits)
    }

    /// A command with the flags that find the same server.
    pub(super) fn command(&self, command: &str, rest: &str) -> String {
        format!("switchboard {command}{} {rest}", self.flags.again()).trim_end().to_owned()
    }

    /// What answers is something else.
    fn no_hub(&self) -> Failure {
        let message = format!("what answers at {} is no Switchboard server with a hub", self.base());
        Failure::unreachable(message, "name the base address of one with --server, without /a2a behind it")
    }
}

/// An address as it was typed, as a URL.
fn with_scheme(server: &str) -> String {
    if server.contains("://") { server.to_owned() } else { format!("http://{server}") }
}

/// In the program of a task, what it does is to be part of the task, and its token opens agents alone. With any other key
/// that is at hand it would be another caller's work, without the limits of the task.
fn refuse_in_a_task(flags: &HubFlags) -> Result<(), Failure> {
    let Some(access) = target::task_access() else { return Ok(()) };
    let credentials = flags.credentials();
    let is_typed = credentials.variable.is_none() && (credentials.bearer.is_some() || credentials.api_key.is_some());
    let origin = |url: &str| Url::parse(&with_scheme(url)).ok().map(|url| url.origin());
    let is_elsewhere = flags.server.as_ref().is_some_and(|server| origin(server) != origin(&access.url));
    if is_typed || is_elsewhere {
        return Ok(());
    }
    let root = sanitize::shell_word(&format!("{}/a2a", access.url.trim_end_matches('/')));
    let next = format!(
        "switchboard send NAME TEXT calls an agent that this task may call, and switchboard send {root} TEXT \
         --metadata skill=ID the one that routing picks; a key of your own is typed with --bearer"
    );
    let message = "this runs in the program of a task, whose token opens agents and not the API of the hub";
    Err(Failure::no_credentials(message, next))
}

/// The server of the workspace: the one on its data, else whatever listens where it would.
async fn of_workspace(flags: &HubFlags) -> Result<Found, Failure> {
    let by_url = "name the server by its URL with --server";
    let workspace = target::settings(&flags.workspace).map_err(|failure| {
        let next = "switchboard config check says it in full; with --server URL no workspace is needed";
        failure.with_hint(flags.workspace.in_commands(next))
    })?;
    let running = target::running(&workspace).await.map_err(|failure| failure.with_hint(by_url))?;
    if let Some(status) = running {
        let roots = target::roots(status.certificate.as_deref());
        return Ok(Found { base: target::base(&status), roots, is_local: true });
    }
    let url = target::default_url(&workspace);
    if !target::is_answered(&url).await {
        let next = format!(
            "start one with switchboard serve{}, or name the one that runs: its data with --data-dir, its workspace with \
             --workspace, or its URL with --server",
            flags.workspace.again()
        );
        return Err(Failure::unreachable(target::nothing_runs(&workspace, &url), next));
    }
    let note = format!("no server runs on the data in {}; trying {url}", workspace.data_dir().display());
    Printer::new(Output::Text).note(&note);
    let own = workspace.config.server.tls.files().map(|(certificate, _)| certificate);
    Ok(Found { base: url, roots: target::roots(own), is_local: false })
}

fn secret_value(secret: &Secret, scheme: &str) -> Result<HeaderValue, Failure> {
    let text = secret.read().map_err(|error| Failure::usage(error.to_string(), ""))?;
    let mut value = HeaderValue::from_str(&format!("{scheme}{text}")).map_err(|_| {
        let problem = "the key has characters that cannot stand in a header, such as a line break";
        Failure::usage(problem, "look at how it was copied, and set it again without them")
    })?;
    value.set_sensitive(true);
    Ok(value)
}
