//! The caller's side of the control socket: sends a request to the server that holds the data directory, and without a
//! server handles it in this process, on the data file itself.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use switchboard_engine::clock::SystemClock;
use switchboard_engine::store::Store;
use switchboard_host::control::{ControlError, ControlHandler, DeliveryHold, Reply, Request, SocketPath};
use switchboard_host::keys::KeyService;
use switchboard_host::serve::{StartError, open_problem};
use switchboard_store::{LockHolder, OpenError, Options, SqliteStore, database_path, lock_holder};
use switchboard_webhooks::WebhookService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::Instant;

/// How long a server may take from locking the directory to accepting, and another command to release its lock.
const SERVER_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ControlClientError {
    /// The directory holds no data file.
    #[error("there is no data in {}", .0.display())]
    NoData(PathBuf),
    /// A process holds the lock and accepts no connection.
    #[error("the data directory {} is held by {holder}, which does not answer on its control socket: {source}", directory.display())]
    Silent {
        /// The directory.
        directory: PathBuf,
        /// The process that holds the lock.
        holder: LockHolder,
        /// The connection error.
        source: io::Error,
    },
    /// The directory cannot be read.
    #[error("cannot use {}: {source}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The data file cannot be opened.
    #[error(transparent)]
    Open(#[from] Box<StartError>),
    /// The server refused the request.
    #[error(transparent)]
    Refused(#[from] ControlError),
    /// The connection broke, or the reply is malformed.
    #[error("the server gave no proper answer: {0}")]
    Answer(#[from] io::Error),
}

/// Who handles a request.
pub enum ControlClient {
    /// A running server, over its control socket.
    Server {
        /// The connection.
        stream: UnixStream,
        /// The process of the server.
        pid: Option<u32>,
    },
    /// No server runs: this process holds the data file.
    File {
        /// The handler that a server has behind its socket.
        handler: ControlHandler,
        /// Closed after the request.
        store: Arc<SqliteStore>,
    },
}

impl ControlClient {
    /// Connects to the server of a data directory, or opens its file. `create` makes the file if there is none.
    ///
    /// # Errors
    /// If the holder of the lock does not accept, or there is no data.
    pub async fn open(data_dir: &Path, create: bool) -> Result<Self, ControlClientError> {
        let deadline = Instant::now() + SERVER_TIMEOUT;
        loop {
            let looked = lock_holder(data_dir)
                .map_err(|source| ControlClientError::Directory { directory: data_dir.to_owned(), source });
            let Some(holder) = looked? else {
                match Self::open_file(data_dir, create) {
                    // Another process took the lock in between.
                    Err(ControlClientError::Open(error)) if error.is_held() && Instant::now() < deadline => {}
                    other => return other,
                }
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            };
            match connect(data_dir).await {
                Ok(stream) => {
                    return Ok(Self::Server { stream, pid: holder.pid });
                }
                // A server that is starting, or a command that releases the lock soon.
                Err(_) if Instant::now() < deadline => tokio::time::sleep(POLL_INTERVAL).await,
                Err(source) => {
                    return Err(ControlClientError::Silent { directory: data_dir.to_owned(), holder, source });
                }
            }
        }
    }

    /// Whether a server handles the request.
    #[must_use]
    pub fn is_server(&self) -> bool {
        matches!(self, Self::Server { .. })
    }

    /// Tells the handler in this process that webhooks are disabled; a server knows its own configuration.
    #[must_use]
    pub fn with_webhooks_off(self) -> Self {
        match self {
            Self::File { handler, store } => {
                Self::File { handler: handler.with_delivery_hold(Some(DeliveryHold::Disabled)), store }
            }
            server => server,
        }
    }

    /// Sends one request; the connection, or the file, is closed after it.
    ///
    /// # Errors
    /// If it is refused or the reply cannot be read.
    pub async fn request<T: DeserializeOwned>(self, request: Request) -> Result<T, ControlClientError> {
        let reply = match self {
            Self::Server { stream, .. } => ask_server(stream, &request).await?,
            Self::File { handler, store } => {
                let reply = handler.handle(request).await;
                store.close().await.map_err(ControlError::new)?;
                reply
            }
        };
        match reply {
            Reply::Done(value) => {
                serde_json::from_value(value).map_err(|error| ControlClientError::Answer(error.into()))
            }
            Reply::Refused(refusal) => Err(refusal.into()),
        }
    }

    fn open_file(data_dir: &Path, create: bool) -> Result<Self, ControlClientError> {
        if !create && !database_path(data_dir).exists() {
            return Err(ControlClientError::NoData(data_dir.to_owned()));
        }
        let options =
            Options { readers: 1, note: "a switchboard command, done in a moment".to_owned(), ..Options::default() };
        let opened = SqliteStore::open(data_dir, options);
        let store = Arc::new(opened.map_err(|error: OpenError| Box::new(open_problem(data_dir, error)))?);
        let keys = KeyService::new(Arc::clone(&store), Arc::new(SystemClock), None);
        let webhooks = WebhookService::of_store(Arc::clone(&store), Arc::new(SystemClock));
        let handler = ControlHandler::new(keys, webhooks, data_dir.to_owned());
        Ok(Self::File { handler, store })
    }
}

async fn connect(data_dir: &Path) -> io::Result<UnixStream> {
    let path = SocketPath::new(data_dir)?;
    UnixStream::connect(path.as_path()).await
}

async fn ask_server(mut stream: UnixStream, request: &Request) -> Result<Reply, ControlClientError> {
    let mut line = serde_json::to_vec(request).map_err(io::Error::from)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await?;
    if reply.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection").into());
    }
    serde_json::from_slice(&reply).map_err(|error| ControlClientError::Answer(error.into()))
}
