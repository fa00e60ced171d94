//! Why a server does not start, and what to do about it.

#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use switchboard_egress::SetupError;
use switchboard_engine::store::StoreError;
use switchboard_server::TlsError;
use switchboard_store::LockHolder;

use crate::config::Problems;
use crate::sanitize::shell_path;

/// Why a server does not start.
#[derive(thiserror::Error)]
pub enum StartError {
    /// The configuration is wrong.
    #[error("{0}")]
    Config(#[from] Problems),
    /// The certificate or its key cannot be used.
    #[error("{}", sentences(.0))]
    Tls(Vec<TlsError>),
    /// Another process listens on the address.
    #[error("the address {address} is taken{}", by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default())]
    AddressTaken {
        address: SocketAddr,
        /// The process, if it could be found.
        by: Option<String>,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The address is public, and no key exists.
    #[error("{address} can be reached from other machines, and there is no key that callers would need")]
    NoKeys {
        address: SocketAddr,
        /// Where keys are kept.
        data_dir: PathBuf,
    },
    /// Another process has the data directory.
    #[error("the data directory {} is in use by {holder}", directory.display())]
    DataHeld { directory: PathBuf, holder: LockHolder },
    /// The data directory or the database in it cannot be used.
    #[error("the data directory {} cannot be used: {problem}", directory.display())]
    DataUnusable { directory: PathBuf, problem: String, next: &'static str },
    /// The store failed.
    #[error("the store failed: {0}")]
    Store(#[source] StoreError),
    /// What runs the fleet between agents cannot start.
    #[error("the hub cannot start: {0}")]
    Hub(#[source] switchboard_engine::Error),
    /// The client for webhooks cannot be set up.
    #[error("cannot set up the client for webhooks: {0}")]
    Egress(#[source] SetupError),
    /// The control socket cannot be opened.
    #[error("cannot open the control socket in the data directory: {0}")]
    Control(#[source] io::Error),
    /// The listener failed.
    #[error("the server stopped listening: {0}")]
    Serving(#[source] io::Error),
    /// The signals that stop a server cannot be taken over.
    #[error("cannot listen for Ctrl-C: {0}")]
    Signals(#[source] io::Error),
    /// Programs cannot be started here.
    #[error("cannot make ready to start programs: {0}")]
    Children(#[source] io::Error),
    /// An agent cannot be what its configuration says.
    #[error("agent {name}: {problem}")]
    Agent { name: String, problem: String },
    /// The name is not one an agent can have.
    #[error("{0}")]
    AgentName(String),
}

impl StartError {
    /// What to do about it; empty if the message says so already.
    pub fn next_step(&self) -> String {
        match self {
            Self::Children(_) => "check that the data directory can be written and that /proc is there".to_owned(),
            Self::Agent { .. } => {
                "mend its entry in agents.yaml; switchboard doctor says what else is wrong".to_owned()
            }
            Self::AddressTaken { .. } => {
                "stop it, or choose another port with --bind 127.0.0.1:PORT (0 takes any free one)".to_owned()
            }
            Self::Listen { .. } => "choose an address of this machine with --bind ADDRESS:PORT".to_owned(),
            Self::NoKeys { data_dir, .. } => format!(
                "create a key with switchboard keys create --data-dir {} and start again, or bind to a loopback \
                 address such as 127.0.0.1:41242",
                shell_path(data_dir)
            ),
            Self::DataHeld { .. } => "stop that process, or use another data directory with --data-dir DIR".to_owned(),
            Self::DataUnusable { next, .. } => (*next).to_owned(),
            Self::Store(_) | Self::Hub(_) => "switchboard db check looks for damage".to_owned(),
            Self::Config(_) => "switchboard config check says what is in force".to_owned(),
            Self::Tls(_)
            | Self::Egress(_)
            | Self::Control(_)
            | Self::Serving(_)
            | Self::Signals(_)
            | Self::AgentName(_) => String::new(),
        }
    }
}

fn sentences(errors: &[TlsError]) -> String {
    let lines: Vec<String> = errors.iter().map(|error| format!("{error}: {}", error.right)).collect();
    lines.join("\n")
}

/// `main` prints errors in this form, and a person reads it: the sentence and what to do, not the fields.
impl fmt::Debug for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")?;
        let next = self.next_step();
        if next.is_empty() { Ok(()) } else { write!(formatter, "\nnext: {next}") }
    }
}
