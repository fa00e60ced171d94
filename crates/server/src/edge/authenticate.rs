//! Authenticates a request by its key, in `Authorization: Bearer` or in `X-API-Key`.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use switchboard_a2a::{Error, ErrorKind};
use switchboard_engine::{AgentScope, Caller, CallerRole, TASK_TOKEN_PREFIX};

use crate::front::Access;
use crate::websocket::offered_key;
use crate::{CallerIdentity, State};

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Why a request has no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthError {
    Missing,
    /// A key that is not good, or no longer.
    Unknown,
    /// A task token that is over, forged, or for another endpoint.
    TaskToken,
    /// More than one key, and which one counts is not to be guessed.
    Ambiguous,
}

/// The caller of a request. A task token is good where it is meant to be only, and counts before anything else: on an open
/// server the program that shows it would be the server's one caller.
/// Where a WebSocket is opened the key may be among its protocols.
pub(super) fn identify(state: &State, headers: &HeaderMap, access: Access) -> Result<Arc<CallerIdentity>, AuthError> {
    let offered = if access.websocket { offered_key(headers) } else { None };
    let header = bearer(headers).or_else(|| api_key(headers));
    if is_ambiguous(headers) || offered.zip(header).is_some_and(|(offered, header)| offered != header) {
        return Err(AuthError::Ambiguous);
    }
    let shown = header.or(offered);
    if let Some(token) = shown.filter(|token| token.starts_with(TASK_TOKEN_PREFIX)) {
        let caller = access.task_tokens.then(|| state.engine.task_caller(token)).flatten();
        let identity = caller.map(|(caller, revoked)| Arc::new(CallerIdentity::until(caller, revoked)));
        return identity.ok_or(AuthError::TaskToken);
    }
    if state.options.open {
        // Once keys are needed, another state serves, see `CurrentState`.
        return Ok(Arc::clone(&state.local));
    }
    let token = shown.ok_or(AuthError::Missing)?;
    state.authenticator.authenticate(token).ok_or(AuthError::Unknown)
}

pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = scheme.eq_ignore_ascii_case("bearer").then(|| token.trim());
    token.filter(|token| !token.is_empty())
}

fn api_key(headers: &HeaderMap) -> Option<&str> {
    let key = headers.get(X_API_KEY).and_then(|value| value.to_str().ok()).map(str::trim);
    key.filter(|key| !key.is_empty())
}

/// Whether a proxy may have read other credentials than we do: a header twice, or two keys.
fn is_ambiguous(headers: &HeaderMap) -> bool {
    let is_repeated = |name: HeaderName| headers.get_all(name).iter().nth(1).is_some();
    if is_repeated(AUTHORIZATION) || is_repeated(X_API_KEY) {
        return true;
    }
    bearer(headers).zip(api_key(headers)).is_some_and(|(bearer, api_key)| bearer != api_key)
}

/// The challenge for a caller whose key is good and not for this (RFC 6750).
pub(crate) const INSUFFICIENT_SCOPE: HeaderValue =
    HeaderValue::from_static("Bearer realm=\"switchboard\", error=\"insufficient_scope\"");

/// Refuses a caller whose role is below the needed one. What needs an admin concerns the whole server, so a key for some
/// of its agents is not enough.
pub(crate) fn check_role(caller: &Caller, needed: CallerRole) -> Result<(), Error> {
    let role = caller.scopes.role;
    if role >= needed && needed == CallerRole::Admin && caller.scopes.agents != AgentScope::All {
        let message = "this concerns the whole server, and this key is for some of its agents only: create an admin key \
                       without --agents";
        return Err(Error::with_message(ErrorKind::PermissionDenied, message));
    }
    if role >= needed {
        return Ok(());
    }
    let message = format!(
        "this is for keys with the role {needed}, and the role of this key is {role}: create one with switchboard keys \
         create --role {needed}"
    );
    Err(Error::with_message(ErrorKind::PermissionDenied, message))
}

impl AuthError {
    /// The error of a caller whose credentials ended during a request. One that had none until then needs a key now.
    pub(crate) fn since(identity: &CallerIdentity) -> Self {
        if identity.caller.id == Caller::local().id { Self::Missing } else { Self::Unknown }
    }

    pub(crate) fn error(self) -> Error {
        let message = match self {
            Self::Missing => "a key is needed, send it as Authorization: Bearer KEY or as X-API-Key: KEY",
            Self::Unknown => "the key is unknown, revoked or expired",
            Self::TaskToken => {
                "the task token is not good here: it ends with the turn that it was made for, and is for A2A addresses and its task's mailbox only"
            }
            Self::Ambiguous => {
                "the request has more than one key: send one, once, as Authorization: Bearer KEY or as X-API-Key: KEY"
            }
        };
        Error::with_message(ErrorKind::Unauthenticated, message)
    }

    /// The `WWW-Authenticate` header (RFC 6750).
    pub(crate) fn challenge(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Missing => "Bearer realm=\"switchboard\"",
            Self::Unknown | Self::TaskToken => "Bearer realm=\"switchboard\", error=\"invalid_token\"",
            Self::Ambiguous => "Bearer realm=\"switchboard\", error=\"invalid_request\"",
        })
    }
}
