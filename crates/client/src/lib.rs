//! An A2A client for any agent, whatever version and binding it speaks: discovery, negotiation, retries, and streams
//! that reconnect and resubscribe until the task ends.
//!
//! ```no_run
//! use switchboard_client::{Client, CallContext, Peer, egress, response_text};
//! use switchboard_a2a::{Message, Role, SendRequest};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(egress()?, Peer::new("https://agent.example"))?;
//! let request = SendRequest {
//!     tenant: None,
//!     message: Message::text(Role::User, "hello"),
//!     configuration: None,
//!     metadata: None,
//! };
//! let followed = client.stream(&CallContext::default(), request).await?;
//! println!("{}", response_text(&followed.finish().await?));
//! # Ok(())
//! # }
//! ```

#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

mod address;
mod card_cache;
mod client;
mod context;
mod conversation;
mod credentials;
mod discovery;
mod error;
mod event_stream;
mod exchange;
mod interface;
mod not_a2a;
mod oauth;
mod peer;
mod redact;
mod response_text;
mod route;
mod signature;
mod task_stream;
pub mod token_request;
mod trace;
mod wire_format;

pub use card_cache::CardLookup;
pub use client::Client;
pub use context::CallContext;
pub use conversation::Conversation;
pub use credentials::{Credentials, Secret, SecretPermit};
pub use discovery::FoundCard;
pub use error::{CardAttempt, ClientError};
pub use interface::Interface;
pub use oauth::{ClientCredentials, is_private};
pub use peer::{Binding, Limits, Peer, RetryPolicy};
pub use redact::redact_url;
pub use response_text::{is_data, is_explained, is_secondary, points_to_artifacts, readable_parts, response_text};
pub use task_stream::{GapReason, StreamGap, TaskStream, Update, remaining_parts};

use switchboard_egress::{Egress, Options, SetupError};

/// Egress to agents the user of this program names: any address, with the system's certificate authorities.
pub fn egress() -> Result<Egress, SetupError> {
    Egress::new(Options { anywhere: true, idle_per_host: 8, ..Options::default() })
}
