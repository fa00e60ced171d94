//! How a command reaches the server that holds its data directory: a socket in that directory, one line of JSON each
//! way. Where no server runs, the same requests are answered from the file.

mod door;
mod listener;
mod protocol;
mod room;
mod socket;
mod tasks;
mod webhooks;

pub use door::{Door, DoorError};
pub use listener::ControlListener;
pub use protocol::{BackedUp, Refusal, Reply, Request, Status};
pub use room::ControlRoom;
pub use tasks::{BlockedBy, CanceledTask, LiveTask, LiveTaskPage, TaskRequest};
pub use webhooks::{
    ChangedWebhook, DeadLetterPage, LOCAL_CALLER, Retried, RotatedSecret, ShownWebhook, Waits, WebhookPage,
    WebhookRequest,
};
