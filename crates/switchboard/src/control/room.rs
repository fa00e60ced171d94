//! Answers the requests of commands. A server does it for whoever comes through its socket; a command that finds no
//! server does it for itself.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use switchboard_store::BackupError;

use crate::control::protocol::{BackedUp, Refusal, Reply, Request, Status};
use crate::keys::KeyDesk;

type StatusReader = Box<dyn Fn() -> Status + Send + Sync>;

/// Answers requests.
pub struct ControlRoom {
    desk: KeyDesk,
    data_dir: PathBuf,
    status: Option<StatusReader>,
}

impl ControlRoom {
    /// A room over a data directory that this process holds.
    #[must_use]
    pub fn new(desk: KeyDesk, data_dir: PathBuf) -> Self {
        Self { desk, data_dir, status: None }
    }

    /// The same for a server, which can say how it is.
    #[must_use]
    pub fn of_server(mut self, status: impl Fn() -> Status + Send + Sync + 'static) -> Self {
        self.status = Some(Box::new(status));
        self
    }

    /// Does what is asked.
    pub async fn answer(&self, request: Request) -> Reply {
        let answer = match request {
            Request::CreateKey(new) => self.desk.create(new).await.map_err(Refusal::new).and_then(value),
            Request::ListKeys => self.desk.list().await.map_err(Refusal::new).and_then(value),
            Request::RevokeKey { id } => self.desk.revoke(&id).await.map_err(Refusal::new).and_then(value),
            Request::Backup { file } => backup(self.data_dir.clone(), file).await.and_then(value),
            Request::Status => match &self.status {
                Some(status) => value(status()),
                None => Err(Refusal::new(format!("no server runs on the data directory {}", self.data_dir.display()))),
            },
        };
        answer.map_or_else(Reply::Refused, Reply::Done)
    }
}

fn value(answer: impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(answer).map_err(Refusal::new)
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
