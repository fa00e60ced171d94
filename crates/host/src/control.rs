//! The control socket: commands reach the server through a Unix socket in its data directory, one JSON line each way.
//! Without a running server, the command handles the same request itself, on the database file.

mod handler;
mod listener;
mod protocol;
mod socket;
mod tasks;
mod webhooks;

pub use handler::ControlHandler;
pub use listener::ControlListener;
pub use protocol::{BackupReport, ControlError, Reply, Request, Status};
pub use socket::SocketPath;
pub use tasks::{BlockedBy, CanceledTask, LiveTask, LiveTaskPage, TaskRequest};
pub use webhooks::{
    ChangedWebhook, DeadLetterPage, DeliveryHold, LOCAL_CALLER, RetryReport, RotatedSecret, WebhookDetails,
    WebhookPage, WebhookRequest,
};
