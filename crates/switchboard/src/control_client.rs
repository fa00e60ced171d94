//! The command's end: finds out whether a server holds the data directory, and asks it; opens the file itself if not.

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

/// How long a server may take from holding the directory to answering, and another command to be done.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// There is nothing to work on.
    #[error("there is no data in {}", .0.display())]
    NoData(PathBuf),
    /// Somebody holds the directory and does not answer.
    #[error("the data directory {} is held by {holder}, which does not answer on its control socket: {source}", directory.display())]
    Silent {
        /// The directory.
        directory: PathBuf,
        /// Who holds it.
        holder: LockHolder,
        /// What the system said.
        source: io::Error,
    },
    /// The directory cannot be looked at.
    #[error("cannot use {}: {source}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] Box<StartError>),
    /// It was refused.
    #[error(transparent)]
    Refused(#[from] ControlError),
    /// The connection broke, or what came was not a reply.
    #[error("the server gave no proper answer: {0}")]
    Answer(#[from] io::Error),
}

/// Somebody to ask.
pub enum Door {
    /// A running server.
    Server {
        /// Its end of the conversation.
        stream: UnixStream,
        /// Which process it is.
        pid: Option<u32>,
    },
    /// Nobody runs: the file, held by this process.
    File {
        /// Answers like a server would.
        room: ControlHandler,
        /// To be closed at the end.
        store: Arc<SqliteStore>,
    },
}

impl Door {
    /// Finds somebody to ask about a data directory. `create` says whether an empty directory is a place to begin.
    ///
    /// # Errors
    /// If there is nobody, or nothing there.
    pub async fn find(data_dir: &Path, create: bool) -> Result<Self, DoorError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let looked =
                lock_holder(data_dir).map_err(|source| DoorError::Directory { directory: data_dir.to_owned(), source });
            let Some(holder) = looked? else {
                match Self::open_file(data_dir, create) {
                    // Somebody was faster.
                    Err(DoorError::Open(error)) if error.is_held() && Instant::now() < deadline => {}
                    other => return other,
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            match connect(data_dir).await {
                Ok(stream) => {
                    return Ok(Self::Server { stream, pid: holder.pid });
                }
                // It is only just starting, or it is a command that will be done in a moment.
                Err(_) if Instant::now() < deadline => tokio::time::sleep(PAUSE).await,
                Err(source) => {
                    return Err(DoorError::Silent { directory: data_dir.to_owned(), holder, source });
                }
            }
        }
    }

    /// The server's process, if a server answers.
    #[must_use]
    pub fn is_server(&self) -> bool {
        matches!(self, Self::Server { .. })
    }

    /// The same where the configuration has webhooks switched off, which matters if no server runs.
    #[must_use]
    pub fn with_webhooks_off(self) -> Self {
        match self {
            Self::File { room, store } => {
                Self::File { room: room.with_delivery_hold(Some(DeliveryHold::Disabled)), store }
            }
            server => server,
        }
    }

    /// Asks, and ends the conversation.
    ///
    /// # Errors
    /// If it was refused or the answer cannot be read.
    pub async fn ask<T: DeserializeOwned>(self, request: Request) -> Result<T, DoorError> {
        let reply = match self {
            Self::Server { stream, .. } => ask_server(stream, &request).await?,
            Self::File { room, store } => {
                let reply = room.handle(request).await;
                store.close().await.map_err(ControlError::new)?;
                reply
            }
        };
        match reply {
            Reply::Done(value) => serde_json::from_value(value).map_err(|error| DoorError::Answer(error.into())),
            Reply::Refused(refusal) => Err(refusal.into()),
        }
    }

    fn open_file(data_dir: &Path, create: bool) -> Result<Self, DoorError> {
        if !create && !database_path(data_dir).exists() {
            return Err(DoorError::NoData(data_dir.to_owned()));
        }
        let options =
            Options { readers: 1, note: "a switchboard command, done in a moment".to_owned(), ..Options::default() };
        let opened = SqliteStore::open(data_dir, options);
        let store = Arc::new(opened.map_err(|error: OpenError| Box::new(open_problem(data_dir, error)))?);
        let desk = KeyService::new(Arc::clone(&store), Arc::new(SystemClock), None);
        let webhooks = WebhookService::of_store(Arc::clone(&store), Arc::new(SystemClock));
        let room = ControlHandler::new(desk, webhooks, data_dir.to_owned());
        Ok(Self::File { room, store })
    }
}

async fn connect(data_dir: &Path) -> io::Result<UnixStream> {
    let path = SocketPath::new(data_dir)?;
    UnixStream::connect(path.as_path()).await
}

async fn ask_server(mut stream: UnixStream, request: &Request) -> Result<Reply, DoorError> {
    let mut line = serde_json::to_vec(request).map_err(io::Error::from)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await?;
    if reply.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection").into());
    }
    serde_json::from_slice(&reply).map_err(|error| DoorError::Answer(error.into()))
}
