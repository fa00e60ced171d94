//! Replies of a group commit, sent with one wake-up.
//!
//! Replying from the writer thread wakes the runtime once per write, and on a busy core each wake-up takes the core away
//! from the writer. So all replies of a commit go to one task of the runtime, which sends them there, and then tells the
//! readers of all rows. Told by the writer, they would take the core away from it a second time.

use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_engine::store::{Appended, StoreError};
use tokio::runtime::{Handle, Id};
use tokio::sync::{mpsc, oneshot, watch};

/// The result of a write; `None` if it was no append.
pub(crate) type WriteResult = Result<Option<Appended>, StoreError>;

/// Replies that are sent when the batch is dropped: in the task of the runtime, or, if that has ended, with the channel
/// to it.
#[derive(Default)]
struct ReplyBatch {
    replies: Vec<(oneshot::Sender<WriteResult>, WriteResult)>,
    announcement: Option<Announcement>,
}

impl Drop for ReplyBatch {
    fn drop(&mut self) {
        for (waiter, outcome) in self.replies.drain(..) {
            // A caller that has gone away needs no reply.
            waiter.send(outcome).ok();
        }
        if let Some(announcement) = self.announcement.take() {
            announcement.send();
        }
    }
}

/// Wakes the readers of all rows, who find the new rows committed.
pub(crate) struct Announcement(pub(crate) watch::Sender<i64>);

impl Announcement {
    pub(crate) fn send(self) {
        self.0.send_modify(|_| {});
    }
}

type Channel = mpsc::UnboundedSender<ReplyBatch>;

/// How to reply to one caller.
pub(crate) struct Reply {
    waiter: oneshot::Sender<WriteResult>,
    /// Absent outside of a runtime.
    channel: Option<Channel>,
}

/// The channels to the replying tasks, one per runtime.
#[derive(Clone, Default)]
pub(crate) struct ReplyChannels {
    channels: Arc<Mutex<Vec<(Id, Channel)>>>,
}

impl ReplyChannels {
    /// A reply to the current task.
    pub(crate) fn reply(&self) -> (Reply, oneshot::Receiver<WriteResult>) {
        let (waiter, answer) = oneshot::channel();
        (Reply { waiter, channel: self.channel() }, answer)
    }

    fn channel(&self) -> Option<Channel> {
        let runtime = Handle::try_current().ok()?;
        let id = runtime.id();
        let mut channels = self.channels.lock();
        if let Some((_, channel)) = channels.iter().find(|(known, channel)| *known == id && !channel.is_closed()) {
            return Some(channel.clone());
        }
        let (channel, mut answers) = mpsc::unbounded_channel::<ReplyBatch>();
        runtime.spawn(async move {
            while let Some(answers) = answers.recv().await {
                drop(answers);
            }
        });
        channels.retain(|(known, channel)| *known != id && !channel.is_closed());
        channels.push((id, channel.clone()));
        Some(channel)
    }
}

/// Sends the replies of a commit, and after the last one what it has to announce.
pub(crate) fn send_replies(answers: impl Iterator<Item = (Reply, WriteResult)>, announcement: Option<Announcement>) {
    let mut channel: Option<Channel> = None;
    let mut gathered = ReplyBatch { replies: Vec::with_capacity(answers.size_hint().0), announcement: None };
    for (reply, outcome) in answers {
        let same = match (&channel, &reply.channel) {
            (Some(left), Some(right)) => left.same_channel(right),
            (None, None) => true,
            _ => false,
        };
        if !same {
            send_batch(channel.take(), std::mem::take(&mut gathered));
            channel = reply.channel;
        }
        gathered.replies.push((reply.waiter, outcome));
    }
    gathered.announcement = announcement;
    send_batch(channel, gathered);
}

fn send_batch(channel: Option<Channel>, answers: ReplyBatch) {
    match channel {
        // If the runtime has ended, the batch comes back and is dropped, and so sent, here.
        Some(channel) if !answers.replies.is_empty() => drop(channel.send(answers)),
        _ => drop(answers),
    }
}
