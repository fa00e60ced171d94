//! How a command reaches the server that holds its data directory: a socket in that directory, one line of JSON each
//! way. Where no server runs, the command answers the same requests from the file.

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
