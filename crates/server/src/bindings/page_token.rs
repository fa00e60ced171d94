//! Page tokens: the position of the next page, encrypted and bound to the query it was given for. Task keys are counted
//! over all callers, so a readable one would tell how many tasks there are.
//!
//! A token is a tag and the encrypted position. The tag is a keyed hash (MAC) of the query and the position; a second keyed
//! hash, of the tag, is the key stream. So the same position looks different in every query, and a token that was changed
//! by one bit, made up, or given by another server is refused.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use switchboard_a2a::{Error, ListRequest, TaskId, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::ListPosition;
use switchboard_engine::{Address, CallerId, sha256};

/// Bytes of the tag, and of a position.
const HALF: usize = 16;

type Half = [u8; HALF];

/// The tokens of one query.
pub struct PageTokens {
    secret: [u8; 32],
    /// The hash of the query: caller, address and filter.
    query: [u8; 32],
}

impl PageTokens {
    /// The tokens of a query for tasks, keyed by a secret that no caller knows.
    pub fn new(secret: [u8; 32], caller: &CallerId, address: &Address, request: &ListRequest) -> Self {
        let context = request.context_id.as_ref().map(|context| context.as_str());
        let state = request.status.map(switchboard_engine::state_label);
        let since = request.status_timestamp_after.map(|at| at.0.to_string());
        let texts = [Some(caller.as_str()), Some(address.as_str()), context, state, since.as_deref()];
        Self::of(secret, &texts)
    }

    /// The tokens of a query for the webhooks of a task, whose positions have no time. It hashes fewer texts than the one
    /// for tasks, so that neither takes the other's tokens.
    pub(super) fn of_webhooks(secret: [u8; 32], caller: &CallerId, address: &Address, task: &TaskId) -> Self {
        Self::of(secret, &[Some(caller.as_str()), Some(address.as_str()), Some(task.as_str())])
    }

    /// The tokens of any other query, from the texts that tell it from others.
    pub fn of(secret: [u8; 32], texts: &[Option<&str>]) -> Self {
        // The length in front keeps neighbours apart; an absent text differs from an empty one.
        let length = |text: &Option<&str>| text.map_or(u64::MAX, |text| text.len() as u64).to_be_bytes();
        let lengths: Vec<_> = texts.iter().map(length).collect();
        let pieces = lengths.iter().zip(texts);
        let query = sha256(pieces.flat_map(|(length, text)| [length.as_slice(), text.unwrap_or_default().as_bytes()]));
        Self { secret, query }
    }

    /// Writes a token.
    pub fn write(&self, (at, key): ListPosition) -> String {
        let place = (i128::from(at.0) << 64 | i128::from(key.0.cast_unsigned())).to_be_bytes();
        let tag = self.tag(&place);
        URL_SAFE_NO_PAD.encode([tag, xor(place, self.key_stream(&tag))].concat())
    }

    /// Reads a token that was given for the same query.
    pub fn read(&self, token: &str) -> Result<ListPosition, Error> {
        let problem = "is not a token of this server for this question: ask again without it";
        let invalid = || Error::invalid_field("pageToken", problem);
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| invalid())?;
        let Some((tag, hidden)) = bytes.split_first_chunk::<HALF>() else { return Err(invalid()) };
        let hidden = Half::try_from(hidden).map_err(|_| invalid())?;
        let place = xor(hidden, self.key_stream(tag));
        if self.tag(&place) != *tag {
            return Err(invalid());
        }
        let place = i128::from_be_bytes(place);
        let (at, key) = ((place >> 64) as i64, place as i64);
        Ok((Timestamp(at), TaskKey(key)))
    }

    fn tag(&self, place: &Half) -> Half {
        self.keyed(0, &[&self.query, place.as_slice()].concat())
    }

    fn key_stream(&self, tag: &Half) -> Half {
        self.keyed(1, tag)
    }

    /// The hashed bytes of one use always have the same length, which rules out length extension.
    fn keyed(&self, usage: u8, bytes: &[u8]) -> Half {
        let hash = sha256([self.secret.as_slice(), &[usage], bytes]);
        std::array::from_fn(|index| hash[index])
    }
}

fn xor(bytes: Half, key_stream: Half) -> Half {
    std::array::from_fn(|index| bytes[index] ^ key_stream[index])
}
