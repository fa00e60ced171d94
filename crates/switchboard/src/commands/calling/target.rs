//! Resolves the typed agent: a URL, a card file, an agent of the running local server, or a remote of `agents.yaml`.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use switchboard_client::{Credentials, FoundCard, Peer, Secret};
use switchboard_egress::ClientCertificate;
use switchboard_host::config::server::Server;
use switchboard_host::config::suggestion::nearest;
use switchboard_host::config::{Problems, Workspace};
use switchboard_host::control::{Request, Status};
use switchboard_host::printer::{Output, Printer};
use switchboard_host::serve::reachable;
use tokio::net::TcpStream;
use url::Url;

use crate::cli::DataFlags;
use crate::commands::calling::{Failure, sanitize};
use crate::control_client::{self, ControlClientError};
use switchboard_fleet::config::FleetConfig;
use switchboard_fleet::remote_client::{client_certificate, peer};

/// A listener of this machine accepts at once.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct Target {
    pub(super) peer: Peer,
    /// Certificates to trust besides the system's.
    pub(super) roots: Vec<CertificateDer<'static>>,
    /// Shown to an agent that asks for a client certificate.
    pub(super) certificate: Option<ClientCertificate>,
    /// Whether the server of this workspace hosts it.
    pub(super) is_local: bool,
    /// Its card, if that is not to be fetched.
    pub(super) card: Option<FoundCard>,
}

impl Target {
    fn new(peer: Peer) -> Self {
        Self { peer, roots: Vec::new(), certificate: None, is_local: false, card: None }
    }
}

/// What a program of a task is given to call other agents: where the server is, the token of the task, and what to trust
/// the server by.
pub(super) struct TaskAccess {
    pub(super) url: String,
    token: String,
    certificate: Option<PathBuf>,
}

/// That of the task whose program this runs in. It comes before every key that is not typed: what the program calls is
/// part of its task.
pub(super) fn task_access() -> Option<TaskAccess> {
    let read = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (url, token) = (read("SWITCHBOARD_URL")?, read("SWITCHBOARD_TASK_TOKEN")?);
    Some(TaskAccess { url, token, certificate: read("SWITCHBOARD_CA").map(PathBuf::from) })
}

pub(super) async fn find(typed: &str, flags: &DataFlags) -> Result<Target, Failure> {
    if let Some(path) = file(typed) {
        return on_file(&path);
    }
    let is_address = typed.contains(['.', ':', '/']) || typed == "localhost";
    if let Some(TaskAccess { url, token, certificate }) = task_access() {
        let base = format!("{}/a2a", url.trim_end_matches('/'));
        let is_of_server = typed.strip_prefix(&base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if is_of_server || !is_address {
            let mut peer = Peer::new(if is_of_server { typed.to_owned() } else { format!("{base}/{typed}") });
            peer.credentials = Credentials::Bearer(Secret::Plain(token));
            return Ok(Target { roots: roots(certificate.as_deref()), ..Target::new(peer) });
        }
    }
    // A name of the workspace has none of these, and an address at least one, `localhost` aside.
    if is_address {
        return Ok(Target::new(Peer::new(typed)));
    }
    let server = running(&settings(flags)?).await;
    if let Ok(Some(status)) = &server
        && status.agents.iter().any(|name| name == typed)
    {
        // One that is elsewhere and served here is called here, so that the task is known here.
        let peer = Peer::new(format!("{}/a2a/{typed}", base(status)));
        return Ok(Target { roots: roots(status.certificate.as_deref()), is_local: true, ..Target::new(peer) });
    }
    let fleet = load(flags)?;
    if let Some(remote) = fleet.remotes.iter().find(|remote| remote.name.as_str() == typed) {
        let certificate = client_certificate(remote, &fleet.workspace.folder);
        let certificate = certificate.map_err(|error| Failure::internal(error.to_string()))?;
        return Ok(Target { certificate, ..Target::new(peer(remote)) });
    }
    match server? {
        Some(status) => Err(unknown(typed, &fleet, &status.agents, "", flags)),
        None => at_default_address(typed, &fleet, flags).await,
    }
}

/// The agent at the address that a server of this workspace would have: without one on its data, a server that was started
/// in another folder may well be there, and a second one could not take the same address.
async fn at_default_address(typed: &str, fleet: &FleetConfig, flags: &DataFlags) -> Result<Target, Failure> {
    let workspace = &fleet.workspace;
    let url = default_url(workspace);
    let data_dir = workspace.data_dir();
    let data_dir = data_dir.display();
    if is_answered(&url).await {
        let note = format!("no server runs on the data in {data_dir}; trying {url}");
        // A command may ask for several agents.
        static IS_NOTED: Once = Once::new();
        IS_NOTED.call_once(|| Printer::new(Output::Text).note(&note));
        let peer = Peer::new(format!("{url}/a2a/{typed}"));
        let own = workspace.config.server.tls.files().map(|(certificate, _)| certificate);
        return Ok(Target { roots: roots(own), ..Target::new(peer) });
    }
    let tried = nothing_runs(workspace, &url);
    let names: Vec<String> = fleet.agents.iter().map(|agent| agent.name.to_string()).collect();
    if names.iter().any(|name| name == typed) {
        let message = format!("{tried}, so that agent {typed} cannot be called");
        return Err(Failure::unreachable(message, start_one(flags)));
    }
    Err(unknown(typed, fleet, &names, &format!("; {tried}"), flags))
}

/// The failure of a command about the server of a workspace, if there is none, nor one at the default address.
pub(super) async fn needs_server(workspace: &Workspace, flags: &DataFlags) -> Result<(), Failure> {
    let url = default_url(workspace);
    match is_answered(&url).await {
        true => Ok(()),
        false => Err(Failure::unreachable(nothing_runs(workspace, &url), start_one(flags))),
    }
}

pub(super) fn nothing_runs(workspace: &Workspace, url: &str) -> String {
    format!("no server runs on the data in {}, and nothing listens at {url}", workspace.data_dir().display())
}

fn start_one(flags: &DataFlags) -> String {
    format!(
        "start one with switchboard serve{}, or name the one that runs: its data with --data-dir, its workspace with \
         --workspace, or the agent by its URL",
        flags.again()
    )
}

/// The address of a server of this workspace that was started without flags.
pub(super) fn default_url(workspace: &Workspace) -> String {
    let server = &workspace.config.server;
    let bind = match server.bind.0.port() {
        // Any free port: which one cannot be known.
        0 => Server::default().bind.0,
        _ => server.bind.0,
    };
    server.url_at(reachable(bind)).as_str().to_owned()
}

/// Whether anything accepts connections at an address of this machine.
pub(super) async fn is_answered(url: &str) -> bool {
    let Some((_, address)) = url.split_once("://") else { return false };
    matches!(tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await, Ok(Ok(_)))
}

/// The file that is meant, if it is one.
fn file(typed: &str) -> Option<PathBuf> {
    if typed.starts_with("file:") {
        return Some(Url::parse(typed).ok().and_then(|url| url.to_file_path().ok()).unwrap_or_else(|| typed.into()));
    }
    let is_path = ["/", "./", "../"].iter().any(|start| typed.starts_with(start));
    let could_be = typed.contains(['.', '/']) && !typed.contains("://");
    (is_path || could_be && Path::new(typed).is_file()).then(|| typed.into())
}

/// An agent whose card is at hand. It is called where the card says: there is no other address.
fn on_file(path: &Path) -> Result<Target, Failure> {
    let shown = path.display();
    let json = std::fs::read(path).map_err(|error| {
        Failure::no_agent(format!("the card {shown} cannot be read: {error}"), "name a file that exists, or a URL")
    })?;
    let card = FoundCard::from_json(json.into(), path.display().to_string()).map_err(|error| {
        Failure::card(
            format!("{shown} is no agent card: {error}"),
            "switchboard card URL -o json prints what one looks like",
        )
    })?;
    let called = card.card.supported_interfaces.first().map(|interface| interface.url.clone());
    // An agent without an interface is never called; `.invalid` resolves nowhere.
    let mut peer = Peer::new(called.unwrap_or_else(|| "https://card.invalid".to_owned()));
    peer.trust_card_url = true;
    Ok(Target { card: Some(card), ..Target::new(peer) })
}

/// The workspace and its agents, without looking into the files that only a server needs.
pub(super) fn load(flags: &DataFlags) -> Result<FleetConfig, Failure> {
    flags.load().map_err(|problems| refused(&problems, flags))
}

/// The settings of the workspace's server alone: what is wrong with the files of agents does not keep a command from it.
pub(super) fn settings(flags: &DataFlags) -> Result<Workspace, Failure> {
    flags.load_settings().map_err(|problems| refused(&problems, flags))
}

fn refused(problems: &Problems, flags: &DataFlags) -> Failure {
    let problems: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
    let next = "switchboard config check says it in full; an agent's URL needs no workspace";
    Failure::internal(problems.join("; ")).with_hint(flags.in_commands(next))
}

pub(super) async fn running(workspace: &Workspace) -> Result<Option<Status>, Failure> {
    match control_client::request::<Status>(workspace, Request::Status).await {
        Ok((status, _)) => Ok(Some(status)),
        Err(ControlClientError::NoData(_) | ControlClientError::NoServer(_)) => Ok(None),
        Err(error) => Err(Failure::internal(error.to_string()).with_hint("name the agent by its URL")),
    }
}

/// What stands in front of every path of the running server.
pub(super) fn base(status: &Status) -> String {
    let scheme = if status.tls { "https" } else { "http" };
    // One that was started before an update says only where it listens.
    if status.url.is_empty() { format!("{scheme}://{}", status.address) } else { status.url.clone() }
}

/// The certificate of the local server, trusted because it may be self-signed. An unreadable one is not.
pub(super) fn roots(certificate: Option<&Path>) -> Vec<CertificateDer<'static>> {
    let found = certificate.and_then(|certificate| CertificateDer::pem_file_iter(certificate).ok());
    found.map(|found| found.filter_map(Result::ok).collect()).unwrap_or_default()
}

fn unknown(typed: &str, fleet: &FleetConfig, hosted: &[String], tried: &str, flags: &DataFlags) -> Failure {
    // It may be listed in a file that is not read.
    fleet.workspace.unread.iter().for_each(|unread| Printer::new(Output::Text).warning(unread));
    let remotes = fleet.remotes.iter().map(|remote| remote.name.as_str());
    let remotes = remotes.filter(|remote| hosted.iter().all(|name| name != remote));
    let names: Vec<&str> = hosted.iter().map(String::as_str).chain(remotes).collect();
    let message =
        format!("this workspace knows no agent {}; it knows {}{tried}", sanitize::shell_word(typed), names.join(", "));
    let next = match nearest(typed, names.iter().copied()) {
        Some(name) => format!("did you mean {name}? switchboard agents lists all of them"),
        None => "name one of them, or a URL such as https://agent.example".to_owned(),
    };
    Failure::no_agent(message, flags.in_commands(&next))
}
