//! Where the next page begins, as an opaque text that only fits the question it was given for.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use switchboard_a2a::{Error, ListRequest, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::{Address, CallerId};

/// Enough of a hash to tell questions apart; a forged one only leads to another page of the caller's own tasks.
const PRINT_BYTES: usize = 8;

type Print = [u8; PRINT_BYTES];

/// The print of a question: who asks, where, and for which tasks.
pub(super) fn print(caller: &CallerId, address: &Address, request: &ListRequest) -> Print {
    let mut hasher = Sha256::new();
    let context = request.context_id.as_ref().map(|context| context.as_str());
    let state = request.status.map(switchboard_engine::state_label);
    let since = request.status_timestamp_after.map(|at| at.0.to_string());
    let texts = [Some(caller.as_str()), Some(address.as_str()), context, state, since.as_deref()];
    for text in texts {
        // The length in front keeps neighbours apart; an absent text differs from an empty one.
        hasher.update(text.map_or(u64::MAX, |text| text.len() as u64).to_be_bytes());
        hasher.update(text.unwrap_or_default());
    }
    let hash: [u8; 32] = hasher.finalize().into();
    let mut print = [0; PRINT_BYTES];
    print.copy_from_slice(&hash[..PRINT_BYTES]);
    print
}

/// Writes a token.
pub(super) fn write((at, key): (Timestamp, TaskKey), print: Print) -> String {
    let mut bytes = Vec::with_capacity(16 + PRINT_BYTES);
    bytes.extend_from_slice(&at.0.to_be_bytes());
    bytes.extend_from_slice(&key.0.to_be_bytes());
    bytes.extend_from_slice(&print);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a token that was given for the same question.
pub(super) fn read(token: &str, print: Print) -> Result<(Timestamp, TaskKey), Error> {
    let invalid = |problem: &str| Error::invalid_field("pageToken", problem);
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| invalid("is not a token of this server"))?;
    let (Some((at, rest)), true) = (bytes.split_first_chunk::<8>(), bytes.len() == 16 + PRINT_BYTES) else {
        return Err(invalid("is not a token of this server"));
    };
    let Some((key, given)) = rest.split_first_chunk::<8>() else {
        return Err(invalid("is not a token of this server"));
    };
    if given != print {
        return Err(invalid("was given for other filters: ask again without it"));
    }
    Ok((Timestamp(i64::from_be_bytes(*at)), TaskKey(i64::from_be_bytes(*key))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_fits_only_its_own_question() {
        let (caller, address) = (CallerId::from("ann"), Address::Root);
        let question = ListRequest::default();
        let own = print(&caller, &address, &question);
        let place = (Timestamp(-5), TaskKey(7));
        let token = write(place, own);
        assert_eq!(read(&token, own).ok(), Some(place));
        let filtered = ListRequest { context_id: Some("".into()), ..ListRequest::default() };
        for other in [
            print(&CallerId::from("bob"), &address, &question),
            print(&caller, &Address::Agent("echo".into()), &question),
            print(&caller, &address, &filtered),
        ] {
            assert!(read(&token, other).is_err());
        }
        for broken in ["", "x", "!!!", &token[1..], &format!("{token}AAAA")] {
            assert!(read(broken, own).is_err(), "{broken}");
        }
    }
}
