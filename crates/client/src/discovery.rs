//! Finds an agent's card and keeps it: fetched once, then only asked whether it has changed.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use switchboard_a2a::card::AgentCard;
use switchboard_egress::{BodyEnd, SendError};
use tokio::time::Instant;

use crate::exchange::Exchange;
use crate::places::Place;
use crate::{ClientError, Credentials, NoCardAt, foreign, wire};

/// The largest card that is read.
const LARGEST: usize = 4 << 20;
/// How long a card is good whose server does not say, and the longest that is believed.
const UNSAID: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3_600);

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
}

impl FoundCard {
    /// A card that is at hand, and where it was.
    ///
    /// # Errors
    /// When it is no card.
    pub fn given(json: Bytes, url: String) -> Result<Self, serde_json::Error> {
        let card = AgentCard::decode(&json)?;
        Ok(Self { card, json, url, etag: None, fresh_until: None })
    }

    pub(crate) fn is_fresh(&self, now: Instant) -> bool {
        self.fresh_until.is_none_or(|until| until > now)
    }
}

/// Looks at every place for the card of an agent.
pub(crate) async fn find(exchange: &Exchange<'_>, place: &Place) -> Result<FoundCard, ClientError> {
    let mut tried = Vec::new();
    for url in place.cards() {
        match fetch_or_retry(exchange, &url).await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {
                let problem = "it answered that nothing has changed, without having been asked".to_owned();
                tried.push(NoCardAt { url, status: Some(StatusCode::NOT_MODIFIED.as_u16()), problem });
            }
            // Neither a wrong name nor a dead host gets better at the next path.
            Err(error @ (ClientError::Unreachable { .. } | ClientError::Secret(_) | ClientError::Timeout { .. })) => {
                return Err(error);
            }
            Err(error) => tried.push(NoCardAt { url, status: status(&error), problem: short(&error) }),
        }
    }
    Err(ClientError::NoCard(tried))
}

/// Asks whether a card has changed. One that cannot be asked for now is as good as it was.
pub(crate) async fn renew(exchange: &Exchange<'_>, known: &FoundCard) -> FoundCard {
    match fetch(exchange, &known.url, known.etag.as_ref()).await {
        Ok(Some(found)) => found,
        Ok(None) => FoundCard { fresh_until: Some(Instant::now() + UNSAID), ..known.clone() },
        Err(error) => {
            tracing::warn!(%error, "the agent card could not be read again; the one that is known is used");
            FoundCard { fresh_until: Some(Instant::now() + UNSAID), ..known.clone() }
        }
    }
}

/// Asks again if the connection was lost or a proxy has nobody behind it. A host that is not there at all is told at once.
async fn fetch_or_retry(exchange: &Exchange<'_>, url: &str) -> Result<Option<FoundCard>, ClientError> {
    let mut attempt = 0;
    loop {
        let error = match fetch(exchange, url, None).await {
            Err(error) if error.is_passing() && !error.is_without_effect() => error,
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
    exchange.introduce(headers)?;
    if let Some(etag) = etag {
        headers.insert(IF_NONE_MATCH, etag.clone());
    }
    let credentials = exchange.context.credentials.as_ref().unwrap_or(&exchange.peer.credentials);
    // Cards are public as a rule; a token is fetched for calls only.
    if !matches!(credentials, Credentials::OAuth(_)) {
        credentials.apply(None, &mut request)?;
    }
    let patience = exchange.peer.limits.head;
    wire::sent(&request);
    let answer = exchange.egress.send(request, patience, LARGEST).await;
    let answer = answer.map_err(|error| ClientError::transport(url, error, patience))?;
    wire::answered(answer.status(), answer.headers(), Some(answer.body()));
    if answer.status() == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    let whole = match answer.extensions().get() {
        Some(BodyEnd::Broken) => {
            return Err(ClientError::Lost { origin: url.to_owned(), error: SendError::Broken });
        }
        end => end == Some(&BodyEnd::Complete),
    };
    let foreign = || foreign::answer(url, answer.status().as_u16(), answer.headers(), answer.body());
    if !answer.status().is_success() || !whole {
        return Err(foreign());
    }
    let card = AgentCard::decode(answer.body()).map_err(|_| foreign())?;
    if card.name.is_empty() && card.supported_interfaces.is_empty() {
        return Err(foreign());
    }
    Ok(Some(FoundCard {
        card,
        // Kept for long, so without the buffer in which it came.
        json: Bytes::copy_from_slice(answer.body()),
        url: url.to_owned(),
        etag: answer.headers().get(ETAG).cloned(),
        fresh_until: Some(Instant::now() + lifetime(answer.headers())),
    }))
}

fn status(error: &ClientError) -> Option<u16> {
    match error {
        ClientError::NotA2a { status, .. } | ClientError::Credentials { status, .. } => Some(*status),
        _ => None,
    }
}

/// What is said of one place among several.
fn short(error: &ClientError) -> String {
    match error {
        ClientError::NotA2a { status: 404, .. } => "not there (404)".to_owned(),
        ClientError::NotA2a { status, what, hint, .. } if hint.is_empty() => format!("{status} with {what}"),
        ClientError::NotA2a { status, what, hint, .. } => format!("{status} with {what}: {hint:?}"),
        error => error.to_string(),
    }
}

fn lifetime(headers: &HeaderMap) -> Duration {
    let said = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let seconds = said.split(',').find_map(|part| part.trim().strip_prefix("max-age=")?.parse().ok());
    seconds.map_or(UNSAID, |seconds| Duration::from_secs(seconds).min(LONGEST))
}
