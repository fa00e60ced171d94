//! The caller's side of the control socket: sends a request to the server that holds the data directory, and without a
//! server handles it in this process, on the data file itself.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use switchboard_engine::clock::SystemClock;
use switchboard_engine::store::ServerStore;
use switchboard_host::config::Workspace;
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
pub(crate) enum ControlClientError {
    /// The directory holds no data file.
    #[error("there is no data in {}", .0.display())]
    NoData(PathBuf),
    /// A process holds the lock and accepts no connection.
    #[error("the data directory {} is held by {holder}, which does not answer on its control socket: {source}", directory.display())]
    Silent { directory: PathBuf, holder: LockHolder, source: io::Error },
    #[error("cannot use {}: {source}", directory.display())]
    Directory { directory: PathBuf, source: io::Error },
    /// The data file cannot be opened.
    #[error(transparent)]
    Open(#[from] Box<StartError>),
    #[error(transparent)]
    Refused(#[from] ControlError),
    /// No server runs on the data, and the request needs one.
    #[error(transparent)]
    NoServer(ControlError),
    /// The connection broke, or the reply is malformed.
    #[error("the server gave no proper answer: {0}")]
    Answer(#[from] io::Error),
}

/// The reply to one request, and whether a running server gave it.
pub(crate) async fn request<T: DeserializeOwned>(
    workspace: &Workspace,
    request: Request,
) -> Result<(T, bool), ControlClientError> {
    // Only a key may be made before there is any data.
    let creates = matches!(request, Request::CreateKey(_));
    let needs_server = matches!(request, Request::Reload | Request::Status | Request::Tasks(_));
    let (reply, is_server) = match Handler::open(&workspace.data_dir(), creates).await? {
        Handler::Server(stream) => (ask_server(stream, &request).await?, true),
        Handler::File(handler, store) => {
            // A server knows its own configuration; this process has to be told.
            let is_off = !workspace.config.webhooks.enabled;
            let handler = if is_off { handler.with_delivery_hold(Some(DeliveryHold::Disabled)) } else { handler };
            let reply = handler.handle(request).await;
            store.close().await.map_err(ControlError::new)?;
            (reply, false)
        }
    };
    match reply {
        Reply::Done(value) => Ok((serde_json::from_value(value).map_err(io::Error::from)?, is_server)),
        Reply::Refused(refusal) if needs_server && !is_server => Err(ControlClientError::NoServer(refusal)),
        Reply::Refused(refusal) => Err(refusal.into()),
    }
}

/// Who handles a request.
enum Handler {
    /// A running server, over its control socket.
    Server(UnixStream),
    /// No server runs: this process holds the data file, which is closed after the request.
    File(ControlHandler, Arc<dyn ServerStore>),
}

impl Handler {
    /// Connects to the server of a data directory, or opens its file. `create` makes the file if there is none.
    async fn open(data_dir: &Path, create: bool) -> Result<Self, ControlClientError> {
        let deadline = Instant::now() + SERVER_TIMEOUT;
        let directory = || data_dir.to_owned();
        loop {
            let looked = lock_holder(data_dir);
            let looked = looked.map_err(|source| ControlClientError::Directory { directory: directory(), source });
            let Some(holder) = looked? else {
                match Self::open_file(data_dir, create) {
                    // Another process took the lock in between.
                    Err(ControlClientError::Open(error))
                        if matches!(*error, StartError::DataHeld { .. }) && Instant::now() < deadline => {}
                    other => return other,
                }
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            };
            match connect(data_dir).await {
                Ok(stream) => return Ok(Self::Server(stream)),
                // A server that is starting, or a command that releases the lock soon.
                Err(_) if Instant::now() < deadline => tokio::time::sleep(POLL_INTERVAL).await,
                Err(source) => return Err(ControlClientError::Silent { directory: directory(), holder, source }),
            }
        }
    }

    fn open_file(data_dir: &Path, create: bool) -> Result<Self, ControlClientError> {
        if !create && !database_path(data_dir).exists() {
            return Err(ControlClientError::NoData(data_dir.to_owned()));
        }
        let options =
            Options { readers: 1, note: "a switchboard command, done in a moment".to_owned(), ..Options::default() };
        let opened = SqliteStore::open(data_dir, options);
        let opened = opened.map_err(|error: OpenError| Box::new(open_problem(data_dir, error)))?;
        let store: Arc<dyn ServerStore> = Arc::new(opened);
        let keys = KeyService::new(store.clone(), Arc::new(SystemClock), None);
        let webhooks = WebhookService::of_store(store.clone(), Arc::new(SystemClock));
        Ok(Self::File(ControlHandler::new(keys, webhooks, data_dir.to_owned()), store))
    }
}

async fn connect(data_dir: &Path) -> io::Result<UnixStream> {
    let path = SocketPath::new(data_dir)?;
    UnixStream::connect(path.as_path()).await
}

async fn ask_server(mut stream: UnixStream, request: &Request) -> io::Result<Reply> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await?;
    if reply.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
    }
    Ok(serde_json::from_slice(&reply)?)
}
