//! API keys: creation, scopes and authentication.
//! The store keeps digests; the secret is shown once, when the key is created.

mod ring;
mod scopes;
mod secret;
mod service;

pub use ring::KeyRing;
pub use scopes::{KeyAgents, KeyScopes};
pub use service::{CreatedKey, KeyError, KeyService, KeyView, NewKey};
