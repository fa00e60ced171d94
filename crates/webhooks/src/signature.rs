//! Signatures as in Standard Webhooks, with a signing secret that the receiver knows.
//!
//! Every caller has its own secrets, so that a receiver of one caller cannot sign for another. They are derived from the
//! store's secret and a generation number, which is all that a rotation changes; for a while after it both are used.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac::{self, HMAC_SHA256};
use switchboard_a2a::Timestamp;
use switchboard_engine::CallerId;
use switchboard_engine::store::webhooks::Signing;

/// A signing secret of one caller.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// The secret of a caller in a generation.
    pub(crate) fn of(store_secret: [u8; 32], generation: u64, caller: &CallerId) -> Self {
        let purpose = format!("webhook signature {generation} {caller}");
        Self(tag(&store_secret, &[purpose.as_bytes()]).as_ref().to_vec())
    }

    /// Reads what [`Self::text`] writes, or the secret of another sender.
    pub fn parse(text: &str) -> Option<Self> {
        STANDARD.decode(text.strip_prefix("whsec_")?).ok().map(Self)
    }

    /// As the libraries of receivers read it.
    pub fn text(&self) -> String {
        format!("whsec_{}", STANDARD.encode(&self.0))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// The secrets in use, newest first.
pub(crate) fn secrets(store_secret: [u8; 32], signing: &Signing, caller: &CallerId, now: Timestamp) -> Vec<Secret> {
    let previous = signing.previous.iter().filter(|(_, until)| now < *until).map(|(generation, _)| *generation);
    let generations = std::iter::once(signing.generation).chain(previous);
    generations.map(|generation| Secret::of(store_secret, generation, caller)).collect()
}

/// The value of `webhook-signature`: one signature per secret.
pub fn sign(secrets: &[Secret], id: &str, timestamp: i64, body: &[u8]) -> String {
    let timestamp = timestamp.to_string();
    let pieces: [&[u8]; 5] = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body];
    let signatures = secrets.iter().map(|Secret(key)| format!("v1,{}", STANDARD.encode(tag(key, &pieces))));
    signatures.collect::<Vec<_>>().join(" ")
}

pub(crate) fn tag(key: &[u8], pieces: &[&[u8]]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(&hmac::Key::new(HMAC_SHA256, key));
    for piece in pieces {
        context.update(piece);
    }
    context.sign()
}
