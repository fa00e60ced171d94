//! How a command reaches the server that holds its data directory: a socket in that directory, one line of JSON each
//! way. Where no server runs, the command answers the same requests from the file.

mod listener;
mod protocol;
mod room;
mod socket;
mod tasks;
mod webhooks;

pub use listener::ControlListener;
pub use protocol::{BackedUp, Refusal, Reply, Request, Status};
pub use room::ControlRoom;
pub use socket::SocketPath;
pub use tasks::{BlockedBy, CanceledTask, LiveTask, LiveTaskPage, TaskRequest};
pub use webhooks::{
    ChangedWebhook, DeadLetterPage, LOCAL_CALLER, Retried, RotatedSecret, ShownWebhook, Waits, WebhookPage,
    WebhookRequest,
};
