//! Answers the requests of commands. A server does it for whoever comes through its socket; a command that finds no
//! server does it for itself.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard_engine::Engine;
use switchboard_store::BackupError;
use switchboard_webhooks::WebhookService;

use crate::control::protocol::{BackedUp, Refusal, Reply, Request, Status, value};
use crate::control::tasks;
use crate::control::webhooks::{self, Waits};
use crate::keys::KeyDesk;
use crate::serve::{Reloaded, Reloader};

type StatusReader = Box<dyn Fn() -> Status + Send + Sync>;

/// Answers requests.
pub struct ControlRoom {
    desk: KeyDesk,
    webhooks: WebhookService,
    /// Why nothing is delivered, if nothing is.
    waits: Option<Waits>,
    data_dir: PathBuf,
    server: Option<Running>,
}

/// What only a server has.
struct Running {
    status: StatusReader,
    reloader: Arc<Reloader>,
    engine: Engine,
}

impl ControlRoom {
    /// A room over a data directory that this process holds.
    #[must_use]
    pub fn new(desk: KeyDesk, webhooks: WebhookService, data_dir: PathBuf) -> Self {
        Self { desk, webhooks, waits: Some(Waits::NoServer), data_dir, server: None }
    }

    /// The same for a server, which can say how it is, read its configuration again and see to its tasks.
    #[must_use]
    pub fn of_server(
        mut self,
        status: impl Fn() -> Status + Send + Sync + 'static,
        reloader: Arc<Reloader>,
        engine: Engine,
    ) -> Self {
        self.server = Some(Running { status: Box::new(status), reloader, engine });
        self
    }

    /// The same where deliveries wait for this, or for nothing.
    #[must_use]
    pub fn delivering(self, waits: Option<Waits>) -> Self {
        Self { waits, ..self }
    }

    /// Does what is asked.
    pub async fn answer(&self, request: Request) -> Reply {
        let answer = match request {
            Request::CreateKey(new) => self.desk.create(new).await.map_err(Refusal::new).and_then(value),
            Request::ListKeys => self.desk.list().await.map_err(Refusal::new).and_then(value),
            Request::RevokeKey { id } => self.desk.revoke(&id).await.map_err(Refusal::new).and_then(value),
            Request::Backup { file } => backup(self.data_dir.clone(), file).await.and_then(value),
            Request::Webhooks(request) => webhooks::answer(&self.webhooks, &self.desk, self.waits, request).await,
            Request::Reload => match &self.server {
                Some(server) => reload(Arc::clone(&server.reloader)).await.and_then(value),
                None => Err(self.no_server()),
            },
            Request::Status => match &self.server {
                Some(server) => value((server.status)()),
                None => Err(self.no_server()),
            },
            Request::Tasks(request) => match &self.server {
                Some(server) => tasks::answer(&server.engine, request).await,
                None => Err(self.no_server()),
            },
        };
        answer.map_or_else(Reply::Refused, Reply::Done)
    }

    fn no_server(&self) -> Refusal {
        Refusal::new(format!("no server runs on the data directory {}", self.data_dir.display()))
    }
}

/// Reads files, so it has a thread of its own.
async fn reload(reloader: Arc<Reloader>) -> Result<Reloaded, Refusal> {
    let reloaded = tokio::task::spawn_blocking(move || reloader.reload()).await.map_err(Refusal::new)?;
    reloaded.map_err(|problems| {
        Refusal::new(problems).with_next("nothing has changed; fix what is named above and run it again")
    })
}

/// Copies on a thread of its own: a large file takes a while.
async fn backup(data_dir: PathBuf, file: PathBuf) -> Result<BackedUp, Refusal> {
    let copying = tokio::task::spawn_blocking(move || copy(&data_dir, &file));
    copying.await.map_err(Refusal::new)?
}

fn copy(data_dir: &Path, file: &Path) -> Result<BackedUp, Refusal> {
    if !file.is_absolute() {
        return Err(Refusal::new(format!("{} is not an absolute path", file.display())));
    }
    switchboard_store::backup(data_dir, file).map_err(no_backup)?;
    let bytes = std::fs::metadata(file).map_err(Refusal::new)?.len();
    Ok(BackedUp { file: file.to_owned(), bytes })
}

fn no_backup(error: BackupError) -> Refusal {
    let exists = matches!(&error, BackupError::Destination { source, .. } if source.kind() == ErrorKind::AlreadyExists);
    let refusal = Refusal::new(error);
    if exists { refusal.with_next("name a file that does not exist") } else { refusal }
}
