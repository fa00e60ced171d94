//! Clients of agents elsewhere, as `agents.yaml` says they are called.

use std::path::{Path, PathBuf};

use http::HeaderName;
use switchboard_client::{Client, ClientCredentials, ClientError, Credentials, Peer, Secret, SecretPermit};
use switchboard_egress::{ClientCertificate, Egress, Options, SetupError};
use switchboard_host::config::regular_file;

use crate::config::remote_agent::RemoteAgent;

/// Makes the clients of a server. Those without a client certificate share their connections.
#[derive(Clone)]
pub struct RemoteClients {
    /// Where relative paths of certificates start.
    folder: PathBuf,
    /// How many tasks may be followed at the same time.
    tasks: usize,
    shared: Egress,
}

/// Connections beside those of followed tasks, each of which may hold one for hours: for messages, looks, cancellations and
/// probes, which take one for a moment.
const OTHER_CONNECTIONS: usize = 512;

/// Connections to one agent that are kept for the next request. Messages of many callers come at the same time: with fewer,
/// most of them would open a connection of their own and close it.
const IDLE_CONNECTIONS: usize = 64;

/// Why an agent cannot be called.
#[derive(Debug, thiserror::Error)]
pub enum RemoteClientError {
    #[error("{} cannot be read: {error}", .path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("the client certificate of agent {agent}: {problem}")]
    Certificate { agent: String, problem: String },
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl RemoteClients {
    /// For a workspace folder and a server that follows at most so many tasks. Agents may be at any address: an operator
    /// has named them.
    pub fn new(folder: PathBuf, tasks: usize) -> Result<Self, SetupError> {
        Ok(Self { folder, tasks, shared: Egress::new(options(tasks))? })
    }

    /// The client of an agent whose tasks are followed. Nothing is sent yet. Its `timeout` bounds a request, not the
    /// task: how long that may take is said by `deadline`.
    pub fn client(&self, agent: &RemoteAgent) -> Result<Client, RemoteClientError> {
        self.client_of(agent, peer(agent))
    }

    /// The same with secrets that are read only while that is permitted.
    pub fn permitted(&self, agent: &RemoteAgent, permit: &SecretPermit) -> Result<Client, RemoteClientError> {
        let secret = |name: &str| Secret::Permitted(name.to_owned(), permit.clone());
        self.client_of(agent, peer_with(agent, secret))
    }

    fn client_of(&self, agent: &RemoteAgent, mut peer: Peer) -> Result<Client, RemoteClientError> {
        let identity = client_certificate(agent, &self.folder)?;
        let egress = match identity {
            None => self.shared.clone(),
            identity => Egress::new(Options { identity, ..options(self.tasks) })?,
        };
        if let Some(limit) = peer.limits.total.take() {
            (peer.limits.head, peer.limits.answer) = (limit, limit);
        }
        Ok(Client::new(egress, peer)?)
    }
}

fn options(tasks: usize) -> Options {
    let connections = tasks.saturating_add(OTHER_CONNECTIONS);
    Options { anywhere: true, connections, idle_per_host: IDLE_CONNECTIONS, ..Options::default() }
}

/// How an agent is called.
pub fn peer(agent: &RemoteAgent) -> Peer {
    peer_with(agent, |name| Secret::Environment(name.to_owned()))
}

fn peer_with(agent: &RemoteAgent, secret: impl Fn(&str) -> Secret) -> Peer {
    let mut peer = Peer::new(agent.url.as_str());
    peer.headers = agent.headers.iter().collect();
    peer.trust_card_url = agent.trust_card_url;
    peer.rest_files = agent.v03.rest_files.into();
    peer.limits.total = agent.time_limit();
    // The file has no more than one of them.
    if let Some(name) = &agent.bearer_env {
        peer.credentials = Credentials::Bearer(secret(name));
    } else if let Some(name) = &agent.api_key_env {
        peer.credentials = Credentials::ApiKey { header: HeaderName::from_static("x-api-key"), key: secret(name) };
    } else if let Some(name) = &agent.hmac_env {
        peer.credentials = Credentials::Signature { header: agent.signature_header(), secret: secret(name) };
    } else if let Some((token_url, client_id, name)) = agent.oauth.parts() {
        let mut oauth = ClientCredentials::new(token_url, client_id, secret(name));
        oauth.scopes.clone_from(&agent.oauth.scopes);
        peer.credentials = Credentials::OAuth(oauth);
    }
    peer
}

/// The certificate that is shown to an agent that asks for one.
pub fn client_certificate(agent: &RemoteAgent, folder: &Path) -> Result<Option<ClientCertificate>, RemoteClientError> {
    let Some((chain, key)) = agent.tls.files(folder) else { return Ok(None) };
    let read = |path: PathBuf| regular_file::read(&path).map_err(|error| RemoteClientError::Unreadable { path, error });
    let failed = |problem: String| RemoteClientError::Certificate { agent: agent.name.to_string(), problem };
    ClientCertificate::from_pem(&read(chain)?, &read(key)?).map(Some).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use switchboard_client::Limits;

    use super::*;
    use crate::config::agent_files::read_item;
    use crate::config::agents::Entry;

    #[test]
    fn a_timeout_is_for_each_request_to_an_agent_that_is_served_and_for_the_whole_call_of_a_command() {
        let item = r#"{"name": "far", "url": "http://127.0.0.1", "timeoutMs": 1500}"#;
        let Ok(Entry::Remote(agent)) = read_item("test", item) else { panic!("{item} is a remote agent") };
        let limit = Duration::from_millis(1_500);
        let command = peer(&agent).limits;
        assert_eq!((command.total, command.answer), (Some(limit), Limits::default().answer));
        let served = RemoteClients::new(PathBuf::new(), 1).unwrap().client(&agent).unwrap();
        let served = &served.peer().limits;
        assert_eq!((served.total, served.head, served.answer), (None, limit, limit), "a task may take longer");
    }

    #[test]
    fn as_many_tasks_can_be_followed_as_the_limit_says_and_others_are_called_beside_them() {
        assert_eq!(options(4_000).connections, 4_512);
        // More than half of the connections are free while few tasks are followed, so they are kept alive.
        assert!(options(1).connections >= Options::default().connections);
    }
}
