//! The credentials of a call and their source. A flag wins over the workspace's credentials for this agent, those over
//! settings for any agent, and those over the token of `auth login`.

use http::header::COOKIE;
use http::{HeaderName, HeaderValue};
use switchboard_a2a::card::{AgentCard, SecurityScheme};
use switchboard_client::{Credentials, Peer, Secret};

use crate::cli::CallFlags;
use crate::commands::calling::auth::Token;
use crate::commands::calling::credential_guard::CredentialGuard;
use crate::commands::calling::{Failure, api_key_location};

pub(super) const BEARER: &str = "A2ACLI_BEARER";
pub(super) const API_KEY: &str = "A2ACLI_API_KEY";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallerIdentity {
    /// There are none.
    Anonymous,
    /// From a flag, or the headers of the workspace.
    Typed,
    /// From a variable or a setting of this name.
    Named(String),
    /// From `auth login`.
    Token(String),
}

impl CallerIdentity {
    pub(super) fn of(peer: &mut Peer, flags: &CallFlags, guard: &CredentialGuard) -> Result<Self, Failure> {
        let of_workspace = named(&peer.credentials);
        let is_typed = |id: &str| flags.origins.is_typed(id);
        let has_flag = is_typed("bearer") || is_typed("api_key");
        let counts = |id: &str| if has_flag { is_typed(id) } else { of_workspace.is_none() };
        let set = |secret: &Option<Secret>| secret.clone().filter(|secret| *secret != Secret::Plain(String::new()));
        let bearer = set(&flags.bearer).filter(|_| counts("bearer"));
        let api_key = set(&flags.api_key).filter(|_| counts("api_key"));
        let header = flags.api_key_header.clone();
        for (secret, name) in [(&bearer, BEARER), (&api_key, API_KEY)] {
            let Some(secret) = secret else { continue };
            fits_a_header(secret, name)?;
        }
        if let (None, None, Some(name)) = (&bearer, &api_key, &of_workspace) {
            guard.stored(name)?;
            if let Credentials::Bearer(secret) | Credentials::ApiKey { key: secret, .. } = &peer.credentials {
                fits_a_header(secret, name)?;
            }
        }
        let name = match (bearer, api_key) {
            (None, None) => {
                return Ok(match of_workspace {
                    Some(name) => Self::Named(name),
                    None if peer.headers.is_empty() => Self::Anonymous,
                    None => Self::Typed,
                });
            }
            (None, Some(key)) => {
                peer.credentials = Credentials::ApiKey { header, key };
                API_KEY
            }
            (Some(bearer), key) => {
                // Some gateways want the one and the agent behind them the other.
                if let Some(key) = key {
                    let key = key.read().map_err(|error| Failure::usage(error.to_string(), ""))?;
                    let mut value = HeaderValue::from_str(&key).map_err(|_| does_not_fit(API_KEY))?;
                    value.set_sensitive(true);
                    peer.headers.push((header, value));
                }
                peer.credentials = Credentials::Bearer(bearer);
                BEARER
            }
        };
        Ok(if has_flag { Self::Typed } else { Self::Named(name.to_owned()) })
    }

    pub(super) fn with_token(token: &Token) -> (Self, Option<Credentials>) {
        let credentials = Credentials::Bearer(Secret::Plain(token.access_token.clone()));
        (Self::Token(token.access_token.clone()), Some(credentials))
    }

    pub(super) fn secrets(&self, peer: &Peer) -> Vec<String> {
        let mut secrets: Vec<String> = match &peer.credentials {
            Credentials::Bearer(secret)
            | Credentials::ApiKey { key: secret, .. }
            | Credentials::Signature { secret, .. } => secret.read().into_iter().collect(),
            _ => Vec::new(),
        };
        if let Self::Token(token) = self {
            secrets.push(token.clone());
        }
        let headers = peer.headers.iter().filter_map(|(_, value)| value.to_str().ok());
        secrets.extend(headers.map(str::to_owned));
        // A shorter text would be redacted all over the log.
        secrets.retain(|secret| secret.len() >= 4);
        secrets
    }
}

/// Refuses a secret with a line break before a request is made. A missing secret is reported when it is needed.
fn fits_a_header(secret: &Secret, name: &str) -> Result<(), Failure> {
    match secret.read() {
        Ok(text) if HeaderValue::from_str(&text).is_err() => Err(does_not_fit(name)),
        _ => Ok(()),
    }
}

fn does_not_fit(name: &str) -> Failure {
    let message = format!("the secret in {name} has characters that cannot stand in a header, such as a line break");
    Failure::usage(message, "look at how it was copied, and set it again without them")
}

fn named(credentials: &Credentials) -> Option<String> {
    match credentials {
        Credentials::Bearer(Secret::Environment(name))
        | Credentials::ApiKey { key: Secret::Environment(name), .. }
        | Credentials::Signature { secret: Secret::Environment(name), .. } => Some(name.clone()),
        Credentials::OAuth(oauth) => match &oauth.client_secret {
            Secret::Environment(name) | Secret::Permitted(name, _) => Some(name.clone()),
            Secret::Plain(_) => Some("agents.yaml".to_owned()),
        },
        Credentials::None => None,
        _ => Some("agents.yaml".to_owned()),
    }
}

/// The same API key where the card wants it, if that is elsewhere.
pub(super) fn as_the_card_wants(card: &AgentCard, peer: &Peer) -> Result<Option<Credentials>, Failure> {
    let Credentials::ApiKey { key, .. } = &peer.credentials else { return Ok(None) };
    let wanted = card.security_schemes.iter().find_map(|(_, scheme)| match scheme {
        SecurityScheme::ApiKey { location, name, .. } => Some((location.as_str(), name.as_str())),
        _ => None,
    });
    let Some((location, name)) = wanted else { return Ok(None) };
    if let Some(problem) = api_key_location::problem(location, name) {
        let next = "if you know the header that it wants, name it with --api-key-header";
        return Err(Failure::card(problem, next));
    }
    Ok(match (location, HeaderName::try_from(name)) {
        ("header", Ok(header)) => Some(Credentials::ApiKey { header, key: key.clone() }),
        ("cookie", _) => {
            let key =
                key.read().map_err(|error| Failure::no_credentials(error.to_string(), "set it, and run again"))?;
            Some(Credentials::ApiKey { header: COOKIE, key: Secret::Plain(format!("{name}={key}")) })
        }
        ("query", _) => Some(Credentials::ApiKeyInQuery { name: name.to_owned(), key: key.clone() }),
        _ => None,
    })
}
