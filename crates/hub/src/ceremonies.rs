//! Ceremonies: runs of skills by a schedule. Each has one job, due when its next run is; the job runner sends the message of
//! the run under a key of ceremony and time, so that a time has one task whoever claims the job, and moves the job on. What
//! becomes of a run is the business of its task; the projector tells of its end.

mod change;
mod completed;
pub mod cron;
mod definition;
mod due;
mod error;
mod fire;
mod follow;
mod journal;
mod manual;
mod notifier;
mod notify;
mod ownership;
mod progress;
mod run;
pub mod schedule;
mod table;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use switchboard_engine::store::StoreError;
use switchboard_host::serve::ServerParts;
use switchboard_webhooks::PostSender;
use tokio::sync::Notify;

pub(crate) use self::completed::{Completed, context_of};
pub(crate) use self::definition::{Definition, problem_of};
pub(crate) use self::error::CeremonyError;
pub(crate) use self::fire::{FireJobs, is_run};
pub(crate) use self::notify::{NOTIFY_KIND, NotifyJobs};
pub(crate) use self::progress::{FIRE_KIND, progress_of};
pub(crate) use self::table::{Ceremony, Source};

use self::follow::Followed;
use self::table::CeremonyTable;
use crate::definition_files::DefinitionFiles;
use crate::registry::WorkspaceFolder;

/// The ceremonies of a server.
pub(crate) struct Ceremonies {
    parts: ServerParts,
    pub(crate) table: CeremonyTable,
    /// What is stored of the files. Locked while ceremonies change.
    followed: tokio::sync::Mutex<Followed>,
    files: Arc<Mutex<DefinitionFiles<Definition>>>,
    /// Has the files read at once.
    reload_now: Arc<Notify>,
    /// The server has started: what its files say from then on is news.
    is_started: AtomicBool,
    posts: PostSender,
}

impl Ceremonies {
    /// Reads files and registrations. A ceremony that cannot be read is left out, and said so.
    pub(crate) async fn open(parts: &ServerParts, workspace: WorkspaceFolder) -> Result<Arc<Self>, StoreError> {
        let settings = &parts.config.hub.ceremonies;
        let webhooks = &parts.config.webhooks;
        let retries = webhooks.retries.iter().map(|wait| wait.duration()).collect();
        let store = Arc::clone(&parts.store) as _;
        let files = DefinitionFiles::new(workspace.path.join(&settings.folder), workspace.environment);
        let ceremonies = Arc::new(Self {
            table: CeremonyTable::default(),
            followed: tokio::sync::Mutex::default(),
            files: Arc::new(Mutex::new(files)),
            reload_now: Arc::default(),
            is_started: AtomicBool::new(false),
            posts: PostSender::new(parts.egress.clone(), store, webhooks.timeout.duration(), retries),
            parts: parts.clone(),
        });
        ceremonies.load_registrations().await?;
        ceremonies.load_followed().await?;
        ceremonies.read_files(true).await;
        Ok(ceremonies)
    }
}
