//! Where something is said: a channel, a thread in it, or a direct conversation. Each is a conversation of its own, whose
//! `contextId` follows from the place, so that nothing has to be kept to find it again.

use switchboard_a2a::ContextId;
use switchboard_engine::sha256;

/// What the name of a platform may be: it begins the `contextId`.
pub(crate) const PLATFORM: &str = "1 to 32 lower-case letters, digits, - and _, a letter or digit first";
const PLATFORM_BYTES: usize = 32;
/// So many bytes of the digest are in a `contextId`.
const DIGEST_BYTES: usize = 16;

/// Where something is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) platform: String,
    pub(crate) channel: String,
    pub(crate) thread: Option<String>,
    pub(crate) is_dm: bool,
}

impl Place {
    /// The conversation. It means something for one owner only, so nobody gains by guessing it.
    pub(crate) fn context(&self) -> ContextId {
        let thread = self.thread.as_deref().unwrap_or_default();
        let digest = self.digest(thread, "");
        ContextId::from(format!("{}-{}", self.platform, hex(&digest[..DIGEST_BYTES])))
    }

    /// The idempotency key of a message that the platform calls so.
    pub(crate) fn key(&self, message_id: &str) -> String {
        format!("channel:{}", hex(&self.digest("", message_id)))
    }

    /// Of parts with their lengths before them, so that none passes for another.
    fn digest(&self, thread: &str, message_id: &str) -> [u8; 32] {
        let is_thread = u8::from(self.thread.is_some());
        let mut text = vec![is_thread];
        for part in [self.platform.as_str(), &self.channel, thread, message_id] {
            text.extend((part.len() as u64).to_be_bytes());
            text.extend(part.as_bytes());
        }
        sha256([text.as_slice()])
    }
}

/// Whether it can be the name of a platform.
pub(crate) fn is_platform(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let begins = name.bytes().next().is_some_and(is_word);
    begins && name.len() <= PLATFORM_BYTES && name.bytes().all(|byte| is_word(byte) || byte == b'-' || byte == b'_')
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
