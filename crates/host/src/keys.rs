//! API keys: how they are made, what they allow, and who a request is from.
//! The store keeps digests; the secret is shown once, to whoever made the key.

mod ring;
mod scopes;
mod secret;
mod service;

pub use ring::KeyRing;
pub use scopes::{KeyAgents, KeyScopes};
pub use secret::Secret;
pub use service::{CreatedKey, KeyError, KeyService, KeyView, NewKey};
