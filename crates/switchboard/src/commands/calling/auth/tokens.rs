//! The tokens of this user, in a file that only this user can read. A token belongs to the agent that it was got for, and is
//! sent nowhere else.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use switchboard_client::token_request::Granted;
use url::Url;

use super::{Failure, Flow};
use crate::cli::settings;

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Tokens {
    tokens: Vec<Token>,
}

/// One token, and how to get the next.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands::calling) struct Token {
    /// The address below which the agent is.
    pub(super) agent: String,
    pub(super) flow: Flow,
    pub(super) token_url: String,
    pub(super) client_id: String,
    pub(super) scopes: Vec<String>,
    pub(in crate::commands::calling) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    /// In seconds since 1970; none if the server did not give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
}

impl Token {
    /// Takes the new access token. The server need not send another refresh token.
    pub(super) fn renewed(self, granted: Granted, now: u64) -> Self {
        Self {
            access_token: granted.access_token,
            refresh_token: granted.refresh_token.or(self.refresh_token),
            expires_at: granted.expires_in.map(|lifetime| now.saturating_add(lifetime.as_secs())),
            ..self
        }
    }

    /// How many seconds it is still good; none if its expiry is unknown.
    pub(super) fn lives(&self, now: u64) -> Option<u64> {
        self.expires_at.map(|end| end.saturating_sub(now))
    }
}

impl Tokens {
    pub(super) fn load() -> Result<Self, Failure> {
        let Some(path) = path() else { return Ok(Self::default()) };
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(failed(&path, &format!("cannot be read: {error}"))),
        };
        serde_json::from_slice(&text).map_err(|_| failed(&path, "does not hold our tokens"))
    }

    /// The token for an agent: the one that was got for the nearest address above it.
    pub(super) fn find(&self, address: &str) -> Option<Token> {
        let fitting = self.tokens.iter().filter(|token| is_below(address, &token.agent));
        fitting.max_by_key(|token| token.agent.len()).cloned()
    }
}

/// The token file under an exclusive lock. Other processes wait until this is dropped, or the process ends.
pub(super) struct TokenFile {
    path: PathBuf,
    _lock: File,
}

impl TokenFile {
    pub(super) async fn open() -> Result<Self, Failure> {
        let path = path().ok_or_else(|| {
            Failure::internal("there is no place to keep a token in").with_hint("set HOME to your home folder")
        })?;
        let beside = path.with_extension("lock");
        let locked = tokio::task::spawn_blocking(move || {
            if let Some(folder) = beside.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&beside)?;
            lock.lock()?;
            Ok::<_, std::io::Error>(lock)
        });
        let locked = locked.await.map_err(std::io::Error::from).flatten();
        let lock = locked.map_err(|error| failed(&path, &format!("cannot be written: {error}")))?;
        Ok(Self { path, _lock: lock })
    }

    /// Stores a token in place of the agent's earlier one; returns the path of the file.
    pub(super) fn keep(&self, token: Token) -> Result<PathBuf, Failure> {
        let mut kept = Tokens::load()?;
        kept.tokens.retain(|known| known.agent != token.agent);
        kept.tokens.push(token);
        self.write(&kept)?;
        Ok(self.path.clone())
    }

    pub(super) fn forget(&self, address: &str) -> Result<Option<String>, Failure> {
        let mut kept = Tokens::load()?;
        let Some(token) = kept.find(address) else { return Ok(None) };
        kept.tokens.retain(|known| known.agent != token.agent);
        self.write(&kept)?;
        Ok(Some(token.agent))
    }

    /// Written to a temporary file and renamed, so that it is never half written.
    fn write(&self, tokens: &Tokens) -> Result<(), Failure> {
        let written = serde_json::to_vec_pretty(tokens).map_err(std::io::Error::from).and_then(|text| {
            let beside = self.path.with_extension(format!("{}.new", std::process::id()));
            let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
            new.write_all(&text)?;
            new.sync_all()?;
            std::fs::rename(&beside, &self.path)
        });
        written.map_err(|error| failed(&self.path, &format!("cannot be written: {error}")))
    }
}

/// Where an agent is whose card was found.
pub(super) fn base(card: &str, address: &str) -> String {
    let known = card.split_once("/.well-known/").map(|(base, _)| base);
    known.filter(|base| is_below(address, base)).unwrap_or(address).to_owned()
}

/// Whether an address is the same as another one or below it, on the same host.
fn is_below(address: &str, base: &str) -> bool {
    let (Ok(address), Ok(base)) = (Url::parse(address), Url::parse(base)) else { return address == base };
    let above = base.path().trim_end_matches('/');
    let rest = address.path().strip_prefix(above);
    address.origin() == base.origin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn path() -> Option<PathBuf> {
    settings::folder().map(|folder| folder.join("tokens.json"))
}

fn failed(path: &Path, what: &str) -> Failure {
    Failure::internal(format!("{} {what}", path.display())).with_hint("put it right or remove it")
}
