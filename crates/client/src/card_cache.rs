//! The cache of an agent's card and of the routes that follow from it. One caller at a time fetches (single flight),
//! and the result counts for all that wait, also that there is no card. A stale card is served while it is revalidated.
//!
//! A card can be pinned: then calls follow it, while what the agent shows is still fetched, for those who look.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use switchboard_a2a::card::AgentCard;
use tokio::time::{Instant, timeout};

use crate::discovery::{self, FoundCard, TimeLimit};
use crate::exchange::Exchange;
use crate::redact::is_secret_header;
use crate::route::Routes;
use crate::{CallContext, ClientError, Credentials, Interface};

/// Negative caching: how long it counts that there is no card, and that fetching failed.
const ABSENT_TTL: Duration = Duration::from_secs(30);
const FAILED_TTL: Duration = Duration::from_secs(2);
/// How long the caller that revalidates waits.
const REVALIDATION_TIMEOUT: Duration = Duration::from_secs(2);
/// How many callers with their own credentials have a cache.
const MAX_CALLERS: usize = 64;

/// The caches of an agent by caller: a card may show more to some callers.
pub(crate) struct CardCaches {
    /// A given card serves all callers.
    given: Option<Arc<FoundCard>>,
    /// What calls of all callers follow, whatever the agent shows them.
    pin: Arc<Pin>,
    default: Arc<CardCache>,
    /// For callers with their own credentials, least recently used first.
    by_credentials: Mutex<VecDeque<(CallerKey, Arc<CardCache>)>>,
}

/// The pinned card, if there is one.
type Pin = Mutex<Option<Arc<PinnedCard>>>;

/// A card that calls follow until another one is pinned.
pub(crate) struct PinnedCard {
    pub(crate) card: Arc<AgentCard>,
    pub(crate) json: Bytes,
}

/// The credentials of one call, and its secret headers.
type CallerKey = (Option<Credentials>, Vec<(HeaderName, HeaderValue)>);

/// None for calls without credentials of their own.
fn key_of(context: &CallContext) -> Option<CallerKey> {
    let is_secret = |(name, value): &&(HeaderName, HeaderValue)| value.is_sensitive() || is_secret_header(name);
    let headers: Vec<_> = context.headers.iter().filter(is_secret).cloned().collect();
    (context.credentials.is_some() || !headers.is_empty()).then(|| (context.credentials.clone(), headers))
}

impl CardCaches {
    pub(crate) fn new(given: Option<FoundCard>) -> Self {
        let (given, pin) = (given.map(Arc::new), Arc::<Pin>::default());
        let default = Arc::new(CardCache::new(given.clone(), Arc::clone(&pin)));
        Self { default, given, pin, by_credentials: Mutex::default() }
    }

    pub(crate) fn pin(&self, card: PinnedCard) {
        *self.pin.lock() = Some(Arc::new(card));
    }

    /// The cache for a call.
    pub(crate) fn of(&self, context: &CallContext) -> Arc<CardCache> {
        let Some(key) = key_of(context) else { return Arc::clone(&self.default) };
        let mut by_credentials = self.by_credentials.lock();
        let at = by_credentials.iter().position(|(before, _)| *before == key);
        let known = match at.and_then(|at| by_credentials.remove(at)) {
            Some((_, known)) => known,
            None => Arc::new(CardCache::new(self.given.clone(), Arc::clone(&self.pin))),
        };
        if by_credentials.len() >= MAX_CALLERS {
            by_credentials.pop_front();
        }
        by_credentials.push_back((key, Arc::clone(&known)));
        known
    }
}

/// The cache of one caller.
pub(crate) struct CardCache {
    /// Held while the card is fetched.
    fetch_lock: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    pin: Arc<Pin>,
}

#[derive(Default)]
struct State {
    /// The card as the agent shows it.
    card: Option<Arc<FoundCard>>,
    /// The pinned card at the place where the shown one is, with both that it was made of.
    pinned: Option<(Arc<PinnedCard>, Arc<FoundCard>, Arc<FoundCard>)>,
    /// Why there is no card, and until when that counts.
    failure: Option<(ClientError, Instant)>,
    /// Routes, and the card they follow from, if there was one.
    routes: Option<(Option<Arc<FoundCard>>, Arc<Routes>)>,
}

/// What is known of a card.
pub struct CardLookup {
    pub card: Result<Arc<FoundCard>, ClientError>,
    /// The agent was asked just now, and this is its answer.
    pub was_asked: bool,
}

enum Cached {
    Fresh(Arc<FoundCard>),
    Stale(Arc<FoundCard>),
    Failed(ClientError),
    Missing,
}

impl CardCache {
    fn new(card: Option<Arc<FoundCard>>, pin: Arc<Pin>) -> Self {
        Self { fetch_lock: tokio::sync::Mutex::new(()), state: Mutex::new(State { card, ..State::default() }), pin }
    }

    /// The card that calls follow, fetched or cached.
    pub(crate) async fn card(&self, exchange: &Exchange<'_>) -> Result<Arc<FoundCard>, ClientError> {
        self.look_up(exchange).await.card
    }

    pub(crate) async fn look_up(&self, exchange: &Exchange<'_>) -> CardLookup {
        let CardLookup { card, was_asked } = self.look_up_shown(exchange).await;
        CardLookup { card: card.map(|shown| self.followed(shown)), was_asked }
    }

    /// The card that calls follow where the agent shows this one: the pinned one, if there is one. Where a card is found is
    /// a matter of the address, and not of what it says, so the pinned one is read as if it stood there.
    pub(crate) fn followed(&self, shown: Arc<FoundCard>) -> Arc<FoundCard> {
        let Some(pinned) = self.pin.lock().clone() else { return shown };
        let mut state = self.state.lock();
        if let Some((of, at, followed)) = &state.pinned
            && Arc::ptr_eq(of, &pinned)
            && Arc::ptr_eq(at, &shown)
        {
            return Arc::clone(followed);
        }
        let followed = Arc::new(shown.replaced_by(AgentCard::clone(&pinned.card), pinned.json.clone()));
        state.pinned = Some((pinned, shown, Arc::clone(&followed)));
        followed
    }

    async fn look_up_shown(&self, exchange: &Exchange<'_>) -> CardLookup {
        let card = match self.cached() {
            Cached::Fresh(card) => Ok(card),
            Cached::Failed(error) => Err(error),
            // The stale card is used also where the agent does not answer.
            Cached::Stale(card) => Ok(self.revalidate(exchange, card).await),
            Cached::Missing => return self.find(exchange).await,
        };
        CardLookup { card, was_asked: false }
    }

    fn cached(&self) -> Cached {
        let (state, now) = (self.state.lock(), Instant::now());
        match (&state.card, &state.failure) {
            (Some(card), _) if card.is_fresh(now) => Cached::Fresh(Arc::clone(card)),
            (Some(card), _) => Cached::Stale(Arc::clone(card)),
            (None, Some((error, until))) if *until > now => Cached::Failed(error.clone()),
            (None, _) => Cached::Missing,
        }
    }

    async fn find(&self, exchange: &Exchange<'_>) -> CardLookup {
        let _guard = self.fetch_lock.lock().await;
        match self.cached() {
            Cached::Fresh(card) | Cached::Stale(card) => return CardLookup { card: Ok(card), was_asked: false },
            Cached::Failed(error) => return CardLookup { card: Err(error), was_asked: false },
            Cached::Missing => {}
        }
        let card = match discovery::find(exchange, exchange.address, None).await {
            Ok(card) => Ok(self.keep(card)),
            Err(error) => {
                let until = negative_ttl(&error).map(|ttl| Instant::now() + ttl);
                self.state.lock().failure = until.map(|until| (error.clone(), until));
                Err(error)
            }
        };
        CardLookup { card, was_asked: true }
    }

    /// One caller revalidates, with a short timeout; all others use the stale card.
    async fn revalidate(&self, exchange: &Exchange<'_>, stale: Arc<FoundCard>) -> Arc<FoundCard> {
        let Ok(_guard) = self.fetch_lock.try_lock() else { return stale };
        if let Cached::Fresh(card) = self.cached() {
            return card;
        }
        let renewed = timeout(REVALIDATION_TIMEOUT, discovery::revalidate(exchange, exchange.address, &stale)).await;
        self.keep(renewed.unwrap_or_else(|_| {
            tracing::warn!("the agent does not say whether its card has changed; the one that is known is used");
            stale.extended()
        }))
    }

    /// Asks the agent for the card that it shows, with the entity tag of the cached one. With a limit it is a probe, and also
    /// waits no longer for another call that fetches the card: the agent has not answered that one either.
    pub(crate) async fn refresh(
        &self,
        exchange: &Exchange<'_>,
        within: Option<Duration>,
    ) -> Result<Arc<FoundCard>, ClientError> {
        let limit = within.and_then(TimeLimit::new);
        let _guard = match limit {
            Some(limit) => limit.bound(exchange.address, self.fetch_lock.lock()).await?,
            None => self.fetch_lock.lock().await,
        };
        let known = self.state.lock().card.clone();
        let card = match known {
            Some(known) => discovery::refresh(exchange, exchange.address, &known, limit).await?,
            None => discovery::find(exchange, exchange.address, limit).await?,
        };
        Ok(self.keep(card))
    }

    fn keep(&self, card: FoundCard) -> Arc<FoundCard> {
        let card = Arc::new(card);
        let mut state = self.state.lock();
        (state.card, state.failure) = (Some(Arc::clone(&card)), None);
        card
    }

    /// The routes that follow from a card, or from there being none. The chosen route is kept while the interfaces are
    /// the same.
    pub(crate) fn routes(
        &self,
        card: Option<Arc<FoundCard>>,
        read: impl FnOnce(Option<&FoundCard>) -> Result<Vec<Interface>, ClientError>,
    ) -> Result<Arc<Routes>, ClientError> {
        let mut state = self.state.lock();
        let address_of = |card: &Option<Arc<FoundCard>>| card.as_ref().map(Arc::as_ptr);
        if let Some((of, routes)) = &state.routes
            && address_of(of) == address_of(&card)
        {
            return Ok(Arc::clone(routes));
        }
        let interfaces = read(card.as_deref())?;
        let routes = match state.routes.take() {
            Some((_, routes)) if routes.interfaces == interfaces => routes,
            _ => Arc::new(Routes::new(interfaces)?),
        };
        state.routes = Some((card, Arc::clone(&routes)));
        Ok(routes)
    }
}

/// How long a failure is cached; none if it is the caller's own.
fn negative_ttl(error: &ClientError) -> Option<Duration> {
    let is_answered = |status: Option<u16>| matches!(status, Some(200..=407 | 409..=428 | 430..=499));
    match error {
        ClientError::Secret(_) | ClientError::Invalid { .. } | ClientError::Address { .. } => None,
        ClientError::NoCard(tried) if tried.iter().all(|tried| is_answered(tried.status)) => Some(ABSENT_TTL),
        _ => Some(FAILED_TTL),
    }
}
