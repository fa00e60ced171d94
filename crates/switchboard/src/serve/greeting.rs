//! What `serve` says when it is ready: who is served and where, where the data is, and two lines to copy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Serialize;
use switchboard_engine::Hosted;

use crate::config::Config;
use crate::config::store::Durability;
use crate::printer::Printer;

/// What a server says of itself.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Greeting {
    /// Where it listens.
    pub address: String,
    /// What stands in front of every path on its cards.
    pub base_url: String,
    /// Who is served.
    pub agents: Vec<Served>,
    /// The card of the agent at the root address.
    pub root_card: String,
    /// Where the data is.
    pub data_dir: PathBuf,
    /// What a commit survives.
    pub durability: Durability,
    /// Whether requests need a key.
    pub keys_required: bool,
    /// How many keys are good.
    pub usable_keys: usize,
    /// A command that sends a message.
    pub send: String,
    /// A command that streams.
    pub stream: String,
}

/// An agent and where its card is.
#[derive(Debug, Clone, Serialize)]
pub struct Served {
    /// Its name.
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// The address of its card.
    pub card: String,
}

impl Greeting {
    pub(super) fn new(
        config: &Config,
        address: SocketAddr,
        data_dir: &Path,
        agents: &[Hosted],
        usable_keys: usize,
        open: bool,
    ) -> Self {
        let base_url = config.server.base_url(address).as_str().to_owned();
        let served = |hosted: &Hosted| Served {
            name: hosted.name.to_string(),
            description: hosted.manifest.description.clone(),
            card: format!("{base_url}/a2a/{}/.well-known/agent-card.json", hosted.name),
        };
        let near = format!("http://{}", reachable(address));
        Self {
            address: address.to_string(),
            agents: agents.iter().map(served).collect(),
            root_card: format!("{base_url}/.well-known/agent-card.json"),
            data_dir: data_dir.to_owned(),
            durability: config.store.durability,
            keys_required: !open,
            usable_keys,
            send: curl(&near, "-s", agents, &[("echo", "hello")], "send", open),
            stream: curl(&near, "-sN", agents, &[("probe", "stream:3"), ("guide", "streams")], "stream", open),
            base_url,
        }
    }

    /// Says it to people.
    pub fn print(&self, printer: Printer) {
        printer.line(format!("Switchboard {} on http://{}", env!("CARGO_PKG_VERSION"), self.address));
        printer.line("");
        let rows = self.agents.iter();
        let rows: Vec<[String; 3]> = rows
            .map(|agent| [format!("agent {}", agent.name), agent.card.clone(), agent.description.clone()])
            .collect();
        printer.table(&rows);
        printer.line("");
        let survives = match self.durability {
            Durability::Full => "durability full: what is committed survives a power cut",
            Durability::Process => "durability process: what is committed survives the end of the process",
        };
        let callers = if self.keys_required {
            format!("a key is needed ({} usable)", self.usable_keys)
        } else {
            "anyone on this machine, no key needed; switchboard keys create changes that".to_owned()
        };
        printer.table(&[
            ["data".to_owned(), format!("{} ({survives})", self.data_dir.display())],
            ["callers".to_owned(), callers],
        ]);
        printer.line("");
        printer.line("send a message:");
        printer.line(format!("  {}", self.send));
        printer.line("stream one:");
        printer.line(format!("  {}", self.stream));
        printer.line("");
        printer.line("Ctrl-C stops it");
    }
}

/// A line to copy that calls the first of the wished agents that is served, or simply the first one.
fn curl(base: &str, flags: &str, agents: &[Hosted], wishes: &[(&str, &str)], operation: &str, open: bool) -> String {
    let wished = |(name, _): &&(&str, &str)| agents.iter().any(|hosted| hosted.name.as_str() == *name);
    let (agent, text) = match wishes.iter().find(wished) {
        Some((name, text)) => (*name, *text),
        None => (agents.first().map_or("", |hosted| hosted.name.as_str()), "hello"),
    };
    let key = if open { "" } else { " -H \"Authorization: Bearer $A2A_KEY\"" };
    let message = format!(r#"{{"message":{{"messageId":"m1","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}"#);
    format!(
        "curl {flags} {base}/a2a/{agent}/message:{operation}{key} -H 'A2A-Version: 1.0' -H 'Content-Type: \
         application/json' -d '{message}'"
    )
}

/// The address as this machine reaches it: a listener on every interface has no address of its own.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
