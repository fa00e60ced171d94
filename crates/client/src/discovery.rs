//! Discovery: fetches an agent's card, and revalidates it by its ETag.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, ETAG, IF_NONE_MATCH, SERVER};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use switchboard_a2a::card::AgentCard;
use switchboard_a2a::jsonrpc::depth_exceeds;
use switchboard_egress::{BodyEnd, SendError};
use tokio::time::{Instant, timeout_at};

use crate::address::{AgentAddress, CardMatch};
use crate::exchange::{Exchange, MAX_DEPTH};
use crate::redact::redact_url;
use crate::{CardAttempt, ClientError, Credentials, not_a2a, trace};

const MAX_CARD_BYTES: usize = 4 << 20;
/// Without `Cache-Control`, and at most.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60);
const MAX_LIFETIME: Duration = Duration::from_secs(3_600);
/// One call reads the card several times, so it is cached at least this long.
const MIN_LIFETIME: Duration = Duration::from_secs(1);

/// A card and where it was found.
#[derive(Clone, Debug)]
pub struct FoundCard {
    pub card: AgentCard,
    pub json: Bytes,
    pub url: String,
    etag: Option<HeaderValue>,
    /// None for a given card, which is never revalidated.
    fresh_until: Option<Instant>,
    /// The parent address it was found at, if it was not the agent's own. It may list interfaces of other agents then.
    pub(crate) parent: Option<AgentAddress>,
    /// Whether the agent is probably built with Python's SDK, which is served by uvicorn.
    pub(crate) is_python_sdk: bool,
}

impl FoundCard {
    /// A card that is given, and its url.
    pub fn from_json(json: Bytes, url: String) -> Result<Self, serde_json::Error> {
        let card = AgentCard::decode(&json)?;
        Ok(Self { card, json, url, etag: None, fresh_until: None, parent: None, is_python_sdk: false })
    }

    pub(crate) fn is_fresh(&self, now: Instant) -> bool {
        self.fresh_until.is_none_or(|until| until > now)
    }

    /// The same card, fresh for some more time.
    pub(crate) fn extended(&self) -> Self {
        Self { fresh_until: Some(Instant::now() + DEFAULT_LIFETIME), ..self.clone() }
    }

    /// Another card as if it had been found where this one was.
    pub(crate) fn replaced_by(&self, card: AgentCard, json: Bytes) -> Self {
        Self { card, json, ..self.clone() }
    }

    /// The address its urls are resolved against.
    pub(crate) fn address<'a>(&'a self, address: &'a AgentAddress) -> &'a AgentAddress {
        self.parent.as_ref().unwrap_or(address)
    }
}

/// Fetches the card of an agent. The address may be an endpoint whose card is at a parent path; but many agents may
/// share a host, and requests for one must never reach another.
///
/// A place that does not answer ends the lookup: the next one would not either. With a limit for all of it the lookup is
/// a question about the agent, and the error names what both places of the address have said.
pub(crate) async fn find(
    exchange: &Exchange<'_>,
    address: &AgentAddress,
    limit: Option<TimeLimit>,
) -> Result<FoundCard, ClientError> {
    let mut lookup = Lookup { exchange, limit, tried: Vec::new(), is_host_away: false };
    if let Some(found) = lookup.fetch_first(address).await? {
        return Ok(found);
    }
    // If the agent has a card that cannot be read, a parent's card counts only if it names exactly this address.
    let is_without = lookup.tried.iter().all(|address| matches!(address.status, Some(404 | 410)));
    let needed = if is_without { CardMatch::Below } else { CardMatch::Exact };
    for parent in address.parents() {
        if lookup.is_host_away {
            break;
        }
        let Some(found) = lookup.fetch_first(&parent).await? else { continue };
        if address.match_card(&found.card, &parent) >= needed {
            tracing::debug!(url = redact_url(&found.url), "a card above this address names it and is used");
            return Ok(FoundCard { parent: Some(parent), ..found });
        }
        let problem = format!("the card there is of another agent, {}", named(&found.card));
        lookup.tried.push(CardAttempt::new(&found.url, Some(StatusCode::OK.as_u16()), problem));
    }
    Err(ClientError::NoCard(lookup.tried))
}

/// A lookup at one place after the other.
struct Lookup<'a> {
    exchange: &'a Exchange<'a>,
    /// The time for all places, of which each gets half of what is left; none: as the peer's limits say of each request.
    limit: Option<TimeLimit>,
    tried: Vec<CardAttempt>,
    /// The host was not reached, or has not answered.
    is_host_away: bool,
}

impl Lookup<'_> {
    /// The card at the first place of an address that has one.
    async fn fetch_first(&mut self, address: &AgentAddress) -> Result<Option<FoundCard>, ClientError> {
        for url in address.card_urls() {
            match fetch_with_retry(self.exchange, &url, self.limit.map(TimeLimit::half)).await {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => {
                    let problem = "it answered that nothing has changed, without having been asked".to_owned();
                    self.tried.push(CardAttempt::new(&url, Some(StatusCode::NOT_MODIFIED.as_u16()), problem));
                }
                Err(error @ ClientError::Secret(_)) => return Err(error),
                Err(error @ (ClientError::Unreachable { .. } | ClientError::Timeout { .. })) => {
                    // What the place before has said is not lost over it, nor what the next one says.
                    if self.limit.is_none() {
                        return Err(error);
                    }
                    self.is_host_away = true;
                    self.tried.push(failed_attempt(&url, &error));
                }
                Err(error) => self.tried.push(failed_attempt(&url, &error)),
            }
        }
        Ok(None)
    }
}

/// How long a lookup or one of its places may take, retries included.
#[derive(Clone, Copy)]
pub(crate) struct TimeLimit {
    whole: Duration,
    until: Instant,
}

impl TimeLimit {
    /// From now on; none if the clock does not go so far.
    pub(crate) fn new(whole: Duration) -> Option<Self> {
        Instant::now().checked_add(whole).map(|until| Self { whole, until })
    }

    /// What comes within the limit; otherwise the agent is the one that has not answered.
    pub(crate) async fn bound<T>(self, agent: &AgentAddress, work: impl Future<Output = T>) -> Result<T, ClientError> {
        let late = |_| ClientError::Timeout { origin: agent.origin(), after: self.whole, task: None };
        timeout_at(self.until, work).await.map_err(late)
    }

    /// The first half of what is left, so that something is left for the next place.
    fn half(self) -> Self {
        let now = Instant::now();
        let whole = self.until.saturating_duration_since(now) / 2;
        Self { whole, until: now + whole }
    }

    /// How long a request may take that may take so long by itself, and the limit that it exceeds then.
    fn of_request(limit: Option<Self>, usual: Duration) -> (Duration, Duration) {
        match limit.map(|limit| (limit.until.saturating_duration_since(Instant::now()), limit.whole)) {
            Some((left, whole)) if left < usual => (left, whole),
            _ => (usual, usual),
        }
    }
}

/// Revalidates a card, and says if that fails. A card that has gone is looked for at the other urls, in the time that is
/// left.
pub(crate) async fn refresh(
    exchange: &Exchange<'_>,
    address: &AgentAddress,
    known: &FoundCard,
    limit: Option<TimeLimit>,
) -> Result<FoundCard, ClientError> {
    match fetch(exchange, &known.url, known.etag.as_ref(), limit).await {
        Ok(Some(found)) if known.parent.is_none() => Ok(found),
        Ok(None) => Ok(known.extended()),
        Ok(Some(_)) => find(exchange, address, limit).await,
        Err(ClientError::NotA2a { status: 300..=499, .. }) => find(exchange, address, limit).await,
        Err(error) => Err(error),
    }
}

/// Revalidates a card. If that fails, the known one is used on.
pub(crate) async fn revalidate(exchange: &Exchange<'_>, address: &AgentAddress, known: &FoundCard) -> FoundCard {
    match fetch(exchange, &known.url, known.etag.as_ref(), None).await {
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

/// Retries if the connection was lost or a proxy has no backend, while there is time. An unreachable host is an error at
/// once.
async fn fetch_with_retry(
    exchange: &Exchange<'_>,
    url: &str,
    limit: Option<TimeLimit>,
) -> Result<Option<FoundCard>, ClientError> {
    let (mut attempt, mut before) = (0, None);
    loop {
        let error = match (fetch(exchange, url, None, limit).await, before) {
            // The time has passed over a retry: what the agent has said before says more.
            (Err(ClientError::Timeout { .. }), Some(before)) if limit.is_some() => return Err(before),
            (Err(error), _) if error.is_transient() && !matches!(error, ClientError::Unreachable { .. }) => error,
            (answer, _) => return answer,
        };
        attempt += 1;
        let Some(wait) = exchange.peer.retries.backoff(attempt, None) else { return Err(error) };
        if limit.is_some_and(|limit| Instant::now() + wait >= limit.until) {
            return Err(error);
        }
        before = Some(error);
        tokio::time::sleep(wait).await;
    }
}

async fn fetch(
    exchange: &Exchange<'_>,
    url: &str,
    etag: Option<&HeaderValue>,
    limit: Option<TimeLimit>,
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
    // Cards are usually public; a token is fetched for calls only.
    if !matches!(credentials, Credentials::OAuth(_)) {
        credentials.apply(None, &mut request)?;
    }
    let (timeout, exceeded) = TimeLimit::of_request(limit, exchange.peer.limits.head);
    trace::request(&request);
    // After tracing, so that no key in the query is logged.
    credentials.add_to_uri(request.uri_mut())?;
    let answer = exchange.egress.send(request, timeout, MAX_CARD_BYTES).await;
    let address = redact_url(url);
    let answer = answer.map_err(|error| ClientError::transport(&address, error, exceeded))?;
    trace::response(answer.status(), answer.headers(), Some(answer.body()));
    if answer.status() == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    match answer.extensions().get() {
        Some(BodyEnd::Broken) => return Err(ClientError::Lost { origin: address, error: SendError::Broken }),
        Some(BodyEnd::Late) => return Err(ClientError::Timeout { origin: address, after: exceeded, task: None }),
        // An error page is described by its beginning.
        Some(BodyEnd::Cut) if answer.status().is_success() => {
            return Err(ClientError::TooLarge { origin: address, limit: MAX_CARD_BYTES });
        }
        _ => {}
    }
    let status = answer.status().as_u16();
    let not_a2a_error = || not_a2a::error(&address, status, answer.headers(), answer.body(), MAX_DEPTH);
    if !answer.status().is_success() || depth_exceeds(answer.body(), MAX_DEPTH) {
        return Err(not_a2a_error());
    }
    let card = AgentCard::decode(answer.body()).map_err(|_| not_a2a_error())?;
    if card.name.is_empty() && card.supported_interfaces.is_empty() {
        return Err(not_a2a_error());
    }
    let is_python_sdk = answer.headers().get(SERVER).is_some_and(|server| server.as_bytes().starts_with(b"uvicorn"));
    Ok(Some(FoundCard {
        card,
        // A copy, because a slice would keep the whole receive buffer alive.
        json: Bytes::copy_from_slice(answer.body()),
        url: url.to_owned(),
        etag: answer.headers().get(ETAG).cloned(),
        fresh_until: Some(Instant::now() + lifetime(answer.headers())),
        parent: None,
        is_python_sdk,
    }))
}

/// Describes the agent of a card.
fn named(card: &AgentCard) -> String {
    let places: Vec<String> = card.supported_interfaces.iter().map(|interface| redact_url(&interface.url)).collect();
    not_a2a::excerpt(&format!("{:?} at {}", card.name, places.join(", ")))
}

/// Describes a failed fetch of one of several urls.
fn failed_attempt(url: &str, error: &ClientError) -> CardAttempt {
    let (status, what, hint) = match error {
        ClientError::NotA2a { status, what, hint, .. } => (*status, what, hint),
        ClientError::TooLarge { limit, .. } => {
            let problem = format!("more than {limit} bytes, the most that is read of a card");
            // Only of a success so much is read.
            return CardAttempt { is_json: true, ..CardAttempt::new(url, Some(StatusCode::OK.as_u16()), problem) };
        }
        ClientError::Credentials { status, .. } => return CardAttempt::new(url, Some(*status), error.to_string()),
        ClientError::Timeout { after, .. } => {
            return CardAttempt::new(url, None, format!("no answer within {} s", in_tenths(*after)));
        }
        ClientError::Lost { error, .. } | ClientError::Unreachable { error, .. } => {
            let is_asked = *error != SendError::ConnectionLimit;
            return CardAttempt { is_asked, ..CardAttempt::new(url, None, error.to_string()) };
        }
        _ => return CardAttempt::new(url, None, error.to_string()),
    };
    let location = what.strip_prefix(not_a2a::REDIRECT).map(str::to_owned);
    let problem = match &location {
        Some(location) => format!("it has moved to {location} ({status}); use that"),
        None if status == 404 => "not there (404)".to_owned(),
        None if hint.is_empty() => format!("{status} with {what}"),
        None => format!("{status} with {what}: {hint:?}"),
    };
    let is_json = (200..=299).contains(&status) && what.starts_with(not_a2a::JSON);
    CardAttempt { is_json, location, ..CardAttempt::new(url, Some(status), problem) }
}

/// Seconds, rounded up to tenths: a part of what was left is no round number.
fn in_tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).ceil() / 10.0
}

fn lifetime(headers: &HeaderMap) -> Duration {
    let cache_control = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let seconds = cache_control.split(',').find_map(|part| part.trim().strip_prefix("max-age=")?.parse().ok());
    seconds.map_or(DEFAULT_LIFETIME, |seconds| Duration::from_secs(seconds).clamp(MIN_LIFETIME, MAX_LIFETIME))
}
