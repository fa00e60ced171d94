//! Channels: messages of chat platforms, which their bridges POST. `channels.yaml` says which agent a channel talks to; the
//! agent `~channel` joins bursts and hands them on. An answer gets back over the feed or a route.

mod binding;
mod file;
mod follow;
mod place;
mod receive;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::{Mutex, RwLock};
use switchboard_host::serve::ServerParts;
use tokio::sync::Notify;

pub(crate) use self::binding::Binding;
pub(crate) use self::place::{PLATFORM, Place, is_platform};
pub(crate) use self::receive::{ChannelError, ChannelMessage, receive};

use self::file::ChannelsFile;
use crate::registry::WorkspaceFolder;
use crate::tasks::channel::mailboxes::Mailboxes;

/// The channels of a server.
pub(crate) struct Channels {
    parts: ServerParts,
    table: RwLock<Arc<ChannelTable>>,
    file: Arc<Mutex<ChannelsFile>>,
    /// Has the file read at once.
    reload_now: Arc<Notify>,
    /// The server has started: what its file says from then on is news.
    is_started: AtomicBool,
    pub(crate) mailboxes: Arc<Mailboxes>,
}

/// What the file says. It is replaced as a whole.
#[derive(Debug, Default)]
pub(crate) struct ChannelTable {
    pub(crate) bindings: Vec<Binding>,
    /// Why the file as it is now does not count.
    pub(crate) problem: Option<String>,
}

impl Channels {
    /// Reads the file. One that cannot be read binds no channel, and says so.
    pub(crate) async fn open(parts: &ServerParts, workspace: &WorkspaceFolder, mailboxes: Arc<Mailboxes>) -> Arc<Self> {
        let settings = &parts.config.hub.channels;
        let file = ChannelsFile::new(workspace.path.join(&settings.file), settings.max.get());
        let channels = Arc::new(Self {
            parts: parts.clone(),
            table: RwLock::default(),
            file: Arc::new(Mutex::new(file)),
            reload_now: Arc::default(),
            is_started: AtomicBool::new(false),
            mailboxes,
        });
        channels.read_file(true).await;
        channels
    }

    /// Messages are joined up to so many bytes: what is saved of them is one event.
    pub(crate) fn joined(&self) -> usize {
        joined_bytes(&self.parts)
    }

    pub(crate) fn table(&self) -> Arc<ChannelTable> {
        Arc::clone(&self.table.read())
    }
}

/// Up to how many bytes messages are joined. A call and an answer may be saved in one event, with what is around them.
pub(crate) fn joined_bytes(parts: &ServerParts) -> usize {
    parts.config.hub.channels.joined.length().min(parts.config.limits.event.length() / 3)
}

impl ChannelTable {
    /// What is said about a channel: of the channel itself, else of all channels of its platform.
    fn find(&self, place: &Place) -> Option<&Binding> {
        let of_platform = |binding: &&Binding| binding.platform == place.platform;
        let mut exact = self.bindings.iter().filter(of_platform);
        exact
            .find(|binding| binding.channel.as_ref() == Some(&place.channel))
            .or_else(|| self.bindings.iter().filter(of_platform).find(|binding| binding.channel.is_none()))
    }
}
