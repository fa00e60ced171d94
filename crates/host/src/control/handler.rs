//! Handles the requests of commands: in a server for the clients of its socket, in a command without a server for the
//! command itself.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use switchboard_engine::Engine;
use switchboard_store::BackupError;
use switchboard_webhooks::WebhookService;

use crate::control::protocol::{BackupReport, ControlError, Reply, Request, Status, value};
use crate::control::tasks;
use crate::control::webhooks::{self, DeliveryHold};
use crate::keys::KeyService;
use crate::serve::{ReloadReport, Reloader};

type StatusReader = Box<dyn Fn() -> Status + Send + Sync>;

pub struct ControlHandler {
    keys: KeyService,
    webhooks: WebhookService,
    /// Why nothing is delivered, if nothing is.
    waits: Option<DeliveryHold>,
    data_dir: PathBuf,
    server: Option<ServerState>,
}

/// What only a running server has.
struct ServerState {
    status: StatusReader,
    reloader: Arc<Reloader>,
    engine: Engine,
}

impl ControlHandler {
    /// A handler for a data directory that this process has locked.
    pub fn new(keys: KeyService, webhooks: WebhookService, data_dir: PathBuf) -> Self {
        Self { keys, webhooks, waits: Some(DeliveryHold::NoServer), data_dir, server: None }
    }

    /// Adds what only a running server offers: status, reload and tasks.
    pub fn with_server(
        mut self,
        status: impl Fn() -> Status + Send + Sync + 'static,
        reloader: Arc<Reloader>,
        engine: Engine,
    ) -> Self {
        self.server = Some(ServerState { status: Box::new(status), reloader, engine });
        self
    }

    pub fn with_delivery_hold(self, waits: Option<DeliveryHold>) -> Self {
        Self { waits, ..self }
    }

    pub async fn handle(&self, request: Request) -> Reply {
        self.answer(request).await.map_or_else(Reply::Refused, Reply::Done)
    }

    async fn answer(&self, request: Request) -> Result<Value, ControlError> {
        match request {
            Request::CreateKey(new) => self.keys.create(new).await.map_err(ControlError::new).and_then(value),
            Request::ListKeys => self.keys.list().await.map_err(ControlError::new).and_then(value),
            Request::RevokeKey { id } => self.keys.revoke(&id).await.map_err(ControlError::new).and_then(value),
            Request::Backup { file } => backup(self.data_dir.clone(), file).await.and_then(value),
            Request::Webhooks(request) => webhooks::handle(&self.webhooks, &self.keys, self.waits, request).await,
            Request::Reload => reload(Arc::clone(&self.server()?.reloader)).await.and_then(value),
            Request::Status => value((self.server()?.status)()),
            Request::Tasks(request) => tasks::handle(&self.server()?.engine, request).await,
        }
    }

    fn server(&self) -> Result<&ServerState, ControlError> {
        let none = || ControlError::new(format!("no server runs on the data directory {}", self.data_dir.display()));
        self.server.as_ref().ok_or_else(none)
    }
}

/// Reads files, so it runs on a blocking thread.
async fn reload(reloader: Arc<Reloader>) -> Result<ReloadReport, ControlError> {
    let reloaded = tokio::task::spawn_blocking(move || reloader.reload()).await.map_err(ControlError::new)?;
    reloaded.map_err(|problems| {
        ControlError::new(problems).with_next("nothing has changed; fix what is named above and run it again")
    })
}

/// Copies on a blocking thread: a large file takes a while.
async fn backup(data_dir: PathBuf, file: PathBuf) -> Result<BackupReport, ControlError> {
    let copying = tokio::task::spawn_blocking(move || copy(&data_dir, &file));
    copying.await.map_err(ControlError::new)?
}

fn copy(data_dir: &Path, file: &Path) -> Result<BackupReport, ControlError> {
    if !file.is_absolute() {
        return Err(ControlError::new(format!("{} is not an absolute path", file.display())));
    }
    switchboard_store::backup(data_dir, file).map_err(backup_error)?;
    let bytes = std::fs::metadata(file).map_err(ControlError::new)?.len();
    Ok(BackupReport { file: file.to_owned(), bytes })
}

fn backup_error(error: BackupError) -> ControlError {
    let exists = matches!(&error, BackupError::Destination { source, .. } if source.kind() == ErrorKind::AlreadyExists);
    let failure = ControlError::new(error);
    if exists { failure.with_next("name a file that does not exist") } else { failure }
}
