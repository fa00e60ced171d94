//! The operator API under `/api`: webhooks for operators, and the callback endpoint for other servers' notifications.
//! Plain JSON both ways.

mod callback;
mod error;
mod parameters;
mod webhooks;

pub(crate) use self::callback::CallbackFront;
pub(crate) use self::webhooks::WebhookFront;
