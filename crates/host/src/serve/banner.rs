//! The start-up banner: agents and their cards, data directory, authentication, and example commands to copy.

#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use serde::Serialize;
use switchboard_engine::Hosted;

use crate::config::server::Server;
use crate::config::store::Durability;
use crate::config::{Origin, Workspace};
use crate::printer::Printer;
use crate::sanitize::shell_path;
use crate::serve::fleet::FirstServed;

/// The start-up banner, as text or JSON.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartupBanner {
    pub address: String,
    /// The URL of that address.
    pub url: String,
    /// The base URL on agent cards.
    pub base_url: String,
    pub agents: Vec<ServedAgent>,
    /// Agents elsewhere that are served for the first time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub first_served: Vec<FirstServed>,
    /// The card of the agent at the root address, if one answers there.
    pub root_card: Option<String>,
    pub data_dir: PathBuf,
    /// What a commit survives.
    pub durability: Durability,
    /// Whether requests need a key.
    pub keys_required: bool,
    /// How many keys are good.
    pub usable_keys: usize,
    /// A `switchboard send` command, for the folder in which the server was started.
    pub call: String,
    /// A `curl` command that sends a message.
    pub send: String,
    /// A `curl` command that streams.
    pub stream: String,
    /// The flags with which `switchboard` commands find this server, each with a leading space.
    #[serde(skip)]
    flags: String,
    /// The base URL for clients on this machine.
    #[serde(skip)]
    pub(super) local_url: String,
}

/// An agent and where its card is.
#[derive(Debug, Clone, Serialize)]
pub struct ServedAgent {
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// The address of its card.
    pub card: String,
}

impl StartupBanner {
    pub(super) fn new(
        workspace: &Workspace,
        address: SocketAddr,
        data_dir: &Path,
        agents: &[Arc<Hosted>],
        usable_keys: usize,
        open: bool,
    ) -> Self {
        let config = &workspace.config;
        let base_url = config.server.base_url(address).as_str().to_owned();
        let served = |hosted: &Arc<Hosted>| ServedAgent {
            name: hosted.name.to_string(),
            description: hosted.served().manifest.description.clone(),
            card: format!("{base_url}/a2a/{}/.well-known/agent-card.json", hosted.name),
        };
        let examples = ExampleCommands::new(workspace, address, data_dir, !open);
        Self {
            address: address.to_string(),
            url: config.server.url_at(address).as_str().to_owned(),
            agents: agents.iter().map(served).collect(),
            first_served: Vec::new(),
            root_card: None,
            data_dir: data_dir.to_owned(),
            durability: config.store.durability,
            keys_required: !open,
            usable_keys,
            call: examples.call(agents, &[("echo", "hi")]),
            send: examples.curl("-s", agents, &[("echo", "hello")], "send"),
            stream: examples.curl("-sN", agents, &[("probe", "stream:3"), ("guide", "streams")], "stream"),
            base_url,
            flags: examples.flags,
            local_url: examples.base,
        }
    }

    /// Prints it as text.
    pub fn print(&self, printer: Printer) {
        printer.line(format!("Switchboard {} on {}", env!("CARGO_PKG_VERSION"), self.url));
        printer.line("");
        if self.agents.is_empty() {
            printer.line("no agent is hosted here: all agents of this workspace are elsewhere");
        }
        let rows = self.agents.iter();
        let rows: Vec<[String; 3]> = rows
            .map(|agent| [format!("agent {}", agent.name), agent.card.clone(), agent.description.clone()])
            .collect();
        printer.table(&rows);
        if !self.first_served.is_empty() {
            printer.line("");
            printer.line("served here for the first time, to every caller that may call them (serve: false keeps one for commands):");
            let rows = self.first_served.iter().map(|agent| [format!("  {}", agent.name), agent.url.clone()]);
            printer.table(&rows.collect::<Vec<_>>());
        }
        printer.line("");
        let survives = match self.durability {
            Durability::Full => "durability full: what is committed survives a power cut",
            Durability::Process => "durability process: what is committed survives the end of the process",
        };
        let callers = if self.keys_required {
            format!("a key is needed ({} usable)", self.usable_keys)
        } else {
            format!("anyone on this machine, no key needed; switchboard keys create{} changes that", self.flags)
        };
        printer.table(&[
            ["data".to_owned(), format!("{} ({survives})", self.data_dir.display())],
            ["callers".to_owned(), callers],
        ]);
        if !self.agents.is_empty() {
            printer.line("");
            if self.keys_required {
                printer.line(format!("put a key into A2A_KEY (switchboard keys create{} makes one):", self.flags));
                printer.line("  export A2A_KEY=");
            }
            printer.line("try it, in this folder:");
            printer.line(format!("  {}", self.call));
            printer.line("send a message:");
            printer.line(format!("  {}", self.send));
            printer.line("stream one:");
            printer.line(format!("  {}", self.stream));
        }
        printer.line("");
        printer.line("Ctrl-C stops it");
    }
}

/// Builds the example commands for clients on this machine.
struct ExampleCommands {
    base: String,
    /// Arguments of curl to trust the certificate, each with a leading space.
    trust: String,
    key: &'static str,
    flags: String,
}

impl ExampleCommands {
    fn new(workspace: &Workspace, address: SocketAddr, data_dir: &Path, keys_required: bool) -> Self {
        let server = &workspace.config.server;
        // The certificate may be one that no authority of this machine has signed.
        let trust = server.tls.files().map(|(certificate, _)| format!(" --cacert {}", shell_path(&full(certificate))));
        let key = if keys_required { " -H \"Authorization: Bearer $A2A_KEY\"" } else { "" };
        let flags = flags(workspace, data_dir);
        Self { base: local_url(server, address), trust: trust.unwrap_or_default(), key, flags }
    }

    /// A `switchboard send` command.
    fn call(&self, agents: &[Arc<Hosted>], preferred: &[(&str, &str)]) -> String {
        let (agent, text) = choose_agent(agents, preferred);
        let key = if self.key.is_empty() { "" } else { "A2ACLI_BEARER=\"$A2A_KEY\" " };
        format!("{key}switchboard send{} {agent} \"{text}\"", self.flags)
    }

    /// A `curl` command.
    fn curl(&self, flags: &str, agents: &[Arc<Hosted>], preferred: &[(&str, &str)], operation: &str) -> String {
        let Self { base, trust, key, .. } = self;
        let (agent, text) = choose_agent(agents, preferred);
        let message = format!(r#"{{"message":{{"messageId":"m1","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}"#);
        format!(
            "curl {flags}{trust} {base}/a2a/{agent}/message:{operation}{key} -H 'A2A-Version: 1.0' -H 'Content-Type: \
             application/json' -d '{message}'"
        )
    }
}

/// The first preferred agent that is hosted and the message for it, else the first hosted one.
fn choose_agent<'a>(agents: &'a [Arc<Hosted>], preferred: &[(&'a str, &'a str)]) -> (&'a str, &'a str) {
    let is_served = |(name, _): &&(&str, &str)| agents.iter().any(|hosted| hosted.name.as_str() == *name);
    match preferred.iter().find(is_served) {
        Some((name, text)) => (*name, *text),
        None => (agents.first().map_or("", |hosted| hosted.name.as_str()), "hello"),
    }
}

/// The flags with which a command in another shell, in the same folder, finds this server. Files and defaults apply
/// there too; what a flag or a variable of this process set has to be repeated.
fn flags(workspace: &Workspace, data_dir: &Path) -> String {
    let mut flags = String::new();
    let folder = full(&workspace.folder);
    if std::env::current_dir().ok().as_ref() != Some(&folder) {
        flags.push_str(&format!(" --workspace {}", shell_path(&folder)));
    }
    let chosen = workspace.settings.iter().find(|setting| setting.key == "store.dataDir");
    if chosen.is_some_and(|chosen| matches!(chosen.origin, Origin::Flag { .. } | Origin::Environment { .. })) {
        flags.push_str(&format!(" --data-dir {}", shell_path(data_dir)));
    }
    flags
}

/// The base URL for clients on this machine. With TLS it must match the certificate: the public base URL if configured,
/// else the address or `localhost`, whichever the certificate is valid for.
pub(super) fn local_url(server: &Server, address: SocketAddr) -> String {
    let address = reachable(address);
    let by_address = server.url_at(address).as_str().to_owned();
    let Some((certificate, _)) = server.tls.files() else { return by_address };
    if let Some(public) = &server.public_base_url {
        return public.as_str().to_owned();
    }
    let is_for_localhost = address.ip().is_loopback()
        && !is_valid_for(certificate, ServerName::from(address.ip()))
        && ServerName::try_from("localhost").is_ok_and(|name| is_valid_for(certificate, name));
    if is_for_localhost { format!("https://localhost:{}", address.port()) } else { by_address }
}

/// Whether the first certificate of a file names this host.
fn is_valid_for(file: &Path, host: ServerName<'_>) -> bool {
    let Ok(certificate) = CertificateDer::from_pem_file(file) else { return false };
    ParsedCertificate::try_from(&certificate).is_ok_and(|parsed| verify_server_name(&parsed, &host).is_ok())
}

fn full(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The address as this machine reaches it: a listener on every interface has no address of its own.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
