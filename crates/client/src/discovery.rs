//! Finds an agent's card and keeps it: fetched once, then only asked whether it has changed.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, ETAG, IF_NONE_MATCH, SERVER};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use switchboard_a2a::card::AgentCard;
use switchboard_egress::{BodyEnd, SendError};
use tokio::time::Instant;

use crate::address::{AgentAddress, CardMatch};
use crate::exchange::Exchange;
use crate::redact::shown;
use crate::{ClientError, Credentials, NoCardAt, not_a2a, trace};

/// The largest card that is read.
const MAX_CARD_BYTES: usize = 4 << 20;
/// How long a card is good whose server does not say, and the longest that is believed.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60);
const MAX_LIFETIME: Duration = Duration::from_secs(3_600);
/// One call looks at a card more than once, whatever its server says.
const MIN_LIFETIME: Duration = Duration::from_secs(1);

/// A card and where it was found.
#[derive(Clone, Debug)]
pub struct FoundCard {
    /// The card.
    pub card: AgentCard,
    /// Its bytes as they came.
    pub json: Bytes,
    /// Where it was.
    pub url: String,
    etag: Option<HeaderValue>,
    /// None for one that does not come from the agent and is never asked for again.
    fresh_until: Option<Instant>,
    /// Where it was found if that is above the agent's address, which it names.
    parent: Option<AgentAddress>,
    /// Whether uvicorn served it, as it serves what is built with Python's SDK.
    is_served_by_uvicorn: bool,
}

impl FoundCard {
    /// A card that is at hand, and where it was.
    ///
    /// # Errors
    /// When it is no card.
    pub fn given(json: Bytes, url: String) -> Result<Self, serde_json::Error> {
        let card = AgentCard::decode(&json)?;
        Ok(Self { card, json, url, etag: None, fresh_until: None, parent: None, is_served_by_uvicorn: false })
    }

    pub(crate) fn is_fresh(&self, now: Instant) -> bool {
        self.fresh_until.is_none_or(|until| until > now)
    }

    /// The same card, good for some more time.
    pub(crate) fn extended(&self) -> Self {
        Self { fresh_until: Some(Instant::now() + DEFAULT_LIFETIME), ..self.clone() }
    }

    /// Whether the agent is built with Python's SDK, as far as can be told.
    pub(crate) fn is_python_sdk(&self) -> bool {
        self.is_served_by_uvicorn
    }

    /// Whether it was found above the agent's address, and may be that of others too.
    pub(crate) fn is_from_parent(&self) -> bool {
        self.parent.is_some()
    }

    /// Where the addresses on it begin, for the agent at a place.
    pub(crate) fn address<'a>(&'a self, address: &'a AgentAddress) -> &'a AgentAddress {
        self.parent.as_ref().unwrap_or(address)
    }
}

/// Looks at every place for the card of an agent. An address may be an endpoint whose agent's card is above it; but many
/// agents may share a host, and what is meant for one of them must never reach another.
pub(crate) async fn find(exchange: &Exchange<'_>, address: &AgentAddress) -> Result<FoundCard, ClientError> {
    let mut tried = Vec::new();
    if let Some(found) = fetch_first(exchange, address, &mut tried).await? {
        return Ok(found);
    }
    // Whoever has a card of its own that cannot be had is called only where it surely is.
    let is_without = tried.iter().all(|address| matches!(address.status, Some(404 | 410)));
    let needed = if is_without { CardMatch::Below } else { CardMatch::Exact };
    for parent in address.parents() {
        let Some(found) = fetch_first(exchange, &parent, &mut tried).await? else { continue };
        if address.match_card(&found.card, &parent) >= needed {
            tracing::debug!(url = shown(&found.url), "a card above this address names it and is used");
            return Ok(FoundCard { parent: Some(parent), ..found });
        }
        let problem = format!("the card there is of another agent, {}", named(&found.card));
        tried.push(NoCardAt::new(&found.url, Some(StatusCode::OK.as_u16()), problem));
    }
    Err(ClientError::NoCard(tried))
}

/// Looks for a card at one address.
async fn fetch_first(
    exchange: &Exchange<'_>,
    address: &AgentAddress,
    tried: &mut Vec<NoCardAt>,
) -> Result<Option<FoundCard>, ClientError> {
    for url in address.card_urls() {
        match fetch_with_retry(exchange, &url).await {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => {
                let problem = "it answered that nothing has changed, without having been asked".to_owned();
                tried.push(NoCardAt::new(&url, Some(StatusCode::NOT_MODIFIED.as_u16()), problem));
            }
            // Neither a wrong name nor a dead host gets better at the next path.
            Err(error @ (ClientError::Unreachable { .. } | ClientError::Secret(_) | ClientError::Timeout { .. })) => {
                return Err(error);
            }
            Err(error) => tried.push(NoCardAt {
                is_json: is_json(&error),
                location: location(&error),
                ..NoCardAt::new(&url, status(&error), description(&error))
            }),
        }
    }
    Ok(None)
}

/// Asks whether a card has changed. One that cannot be asked for now is as good as it was.
pub(crate) async fn revalidate(exchange: &Exchange<'_>, address: &AgentAddress, known: &FoundCard) -> FoundCard {
    match fetch(exchange, &known.url, known.etag.as_ref()).await {
        Ok(Some(found)) => match &known.parent {
            Some(parent) if address.match_card(&found.card, parent) == CardMatch::None => {
                tracing::warn!("the agent card is another agent's now; the one that is known is used");
                known.extended()
            }
            parent => FoundCard { parent: parent.clone(), ..found },
        },
        Ok(None) => known.extended(),
        Err(error) => {
            tracing::warn!(%error, "the agent card could not be read again; the one that is known is used");
            known.extended()
        }
    }
}

/// Asks again if the connection was lost or a proxy has nobody behind it. A host that is not there at all is told at once.
async fn fetch_with_retry(exchange: &Exchange<'_>, url: &str) -> Result<Option<FoundCard>, ClientError> {
    let mut attempt = 0;
    loop {
        let error = match fetch(exchange, url, None).await {
            Err(error) if error.is_passing() && !matches!(error, ClientError::Unreachable { .. }) => error,
            answer => return answer,
        };
        attempt += 1;
        let Some(wait) = exchange.peer.retries.wait(attempt, None) else { return Err(error) };
        tokio::time::sleep(wait).await;
    }
}

async fn fetch(
    exchange: &Exchange<'_>,
    url: &str,
    etag: Option<&HeaderValue>,
) -> Result<Option<FoundCard>, ClientError> {
    let invalid = |error: http::Error| ClientError::Invalid { field: "url", problem: error.to_string() };
    let mut request = Request::get(url).body(Bytes::new()).map_err(invalid)?;
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert("a2a-version", HeaderValue::from_static("1.0"));
    exchange.set_common_headers(headers)?;
    if let Some(etag) = etag {
        headers.insert(IF_NONE_MATCH, etag.clone());
    }
    let credentials = exchange.context.credentials.as_ref().unwrap_or(&exchange.peer.credentials);
    // Cards are public as a rule; a token is fetched for calls only.
    if !matches!(credentials, Credentials::OAuth(_)) {
        credentials.apply(None, &mut request)?;
    }
    let timeout = exchange.peer.limits.head;
    trace::request(&request);
    // Only now, so that no key in an address is told.
    credentials.add_to_uri(request.uri_mut())?;
    let answer = exchange.egress.send(request, timeout, MAX_CARD_BYTES).await;
    let address = shown(url);
    let answer = answer.map_err(|error| ClientError::transport(&address, error, timeout))?;
    trace::response(answer.status(), answer.headers(), Some(answer.body()));
    if answer.status() == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    match answer.extensions().get() {
        Some(BodyEnd::Broken) => return Err(ClientError::Lost { origin: address, error: SendError::Broken }),
        Some(BodyEnd::Late) => return Err(ClientError::Timeout { origin: address, after: timeout, task: None }),
        // An error page says what it is, however long.
        Some(BodyEnd::Cut) if answer.status().is_success() => {
            return Err(ClientError::TooLarge { origin: address, limit: MAX_CARD_BYTES });
        }
        _ => {}
    }
    let not_a2a_error = || not_a2a::error(&address, answer.status().as_u16(), answer.headers(), answer.body());
    if !answer.status().is_success() {
        return Err(not_a2a_error());
    }
    let card = AgentCard::decode(answer.body()).map_err(|_| not_a2a_error())?;
    if card.name.is_empty() && card.supported_interfaces.is_empty() {
        return Err(not_a2a_error());
    }
    Ok(Some(FoundCard {
        card,
        // Kept for long, so without the buffer in which it came.
        json: Bytes::copy_from_slice(answer.body()),
        url: url.to_owned(),
        etag: answer.headers().get(ETAG).cloned(),
        fresh_until: Some(Instant::now() + lifetime(answer.headers())),
        parent: None,
        is_served_by_uvicorn: answer
            .headers()
            .get(SERVER)
            .is_some_and(|server| server.as_bytes().starts_with(b"uvicorn")),
    }))
}

fn status(error: &ClientError) -> Option<u16> {
    match error {
        ClientError::NotA2a { status, .. } | ClientError::Credentials { status, .. } => Some(*status),
        _ => None,
    }
}

/// Whether what was found may be meant to be a card.
fn is_json(error: &ClientError) -> bool {
    matches!(error, ClientError::NotA2a { status: 200..=299, what, .. } if what.starts_with(not_a2a::JSON))
        || matches!(error, ClientError::TooLarge { .. })
}

/// Where a card has moved to.
fn location(error: &ClientError) -> Option<String> {
    match error {
        ClientError::NotA2a { what, .. } => what.strip_prefix(not_a2a::REDIRECT).map(str::to_owned),
        _ => None,
    }
}

/// Whose a card is, and where that one is.
fn named(card: &AgentCard) -> String {
    let places: Vec<String> = card.supported_interfaces.iter().map(|interface| shown(&interface.url)).collect();
    not_a2a::excerpt(&format!("{:?} at {}", card.name, places.join(", ")))
}

/// What is said of one place among several.
fn description(error: &ClientError) -> String {
    if let (Some(location), Some(status)) = (location(error), status(error)) {
        return format!("it has moved to {location} ({status}); use that");
    }
    match error {
        ClientError::TooLarge { limit, .. } => format!("more than {limit} bytes, the most that is read of a card"),
        ClientError::NotA2a { status: 404, .. } => "not there (404)".to_owned(),
        ClientError::NotA2a { status, what, hint, .. } if hint.is_empty() => format!("{status} with {what}"),
        ClientError::NotA2a { status, what, hint, .. } => format!("{status} with {what}: {hint:?}"),
        error => error.to_string(),
    }
}

fn lifetime(headers: &HeaderMap) -> Duration {
    let said = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let seconds = said.split(',').find_map(|part| part.trim().strip_prefix("max-age=")?.parse().ok());
    seconds.map_or(DEFAULT_LIFETIME, |seconds| Duration::from_secs(seconds).clamp(MIN_LIFETIME, MAX_LIFETIME))
}
