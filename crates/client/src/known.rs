//! What is known of an agent: its card, and the ways to call it that follow from the card. It is asked for by one caller
//! at a time, and what that one learns counts for all who wait, also that there is none. A card that was good a moment ago
//! keeps nobody waiting.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use crate::discovery::{self, FoundCard};
use crate::exchange::Exchange;
use crate::route::Ways;
use crate::{ClientError, Context, Credentials, Interface, wire};

/// How long it counts that there is no card, and that nobody could be asked for one.
const ABSENT: Duration = Duration::from_secs(30);
const FAILED: Duration = Duration::from_secs(2);
/// How long whoever asks whether a card has changed waits for that.
const RENEWAL: Duration = Duration::from_secs(2);
/// For so many who bring their own credentials something is kept.
const MOST_CALLERS: usize = 64;

/// What is known of an agent, by who asks: cards may say more to some than to others.
pub(crate) struct Memory {
    /// A card that is at hand is everybody's.
    given: Option<Arc<FoundCard>>,
    usual: Arc<Known>,
    /// For those who bring their own credentials, who came last at the end.
    special: Mutex<VecDeque<(Asker, Arc<Known>)>>,
}

/// Who asks, as far as that is said call by call.
#[derive(PartialEq)]
struct Asker {
    credentials: Option<Credentials>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Asker {
    /// None for those who bring nothing.
    fn of(context: &Context) -> Option<Self> {
        let is_secret = |(name, value): &&(HeaderName, HeaderValue)| value.is_sensitive() || wire::is_secret(name);
        let headers: Vec<_> = context.headers.iter().filter(is_secret).cloned().collect();
        let credentials = context.credentials.clone();
        (credentials.is_some() || !headers.is_empty()).then_some(Self { credentials, headers })
    }
}

impl Memory {
    pub(crate) fn new(given: Option<FoundCard>) -> Self {
        let given = given.map(Arc::new);
        Self { usual: Arc::new(Known::new(given.clone())), given, special: Mutex::default() }
    }

    /// What is known to whoever makes a call.
    pub(crate) fn of(&self, context: &Context) -> Arc<Known> {
        let Some(asker) = Asker::of(context) else { return Arc::clone(&self.usual) };
        let mut special = self.special.lock();
        let at = special.iter().position(|(before, _)| *before == asker);
        let known = match at.and_then(|at| special.remove(at)) {
            Some((_, known)) => known,
            None => Arc::new(Known::new(self.given.clone())),
        };
        if special.len() >= MOST_CALLERS {
            special.pop_front();
        }
        special.push_back((asker, Arc::clone(&known)));
        known
    }
}

/// What is known to some.
pub(crate) struct Known {
    /// Held by whoever asks for the card.
    flight: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    card: Option<Arc<FoundCard>>,
    /// Why there is no card, and how long that counts.
    failure: Option<(ClientError, Instant)>,
    ways: Option<Derived>,
}

/// Ways, and the card that they follow from; none where there was no card.
struct Derived {
    card: Option<Arc<FoundCard>>,
    ways: Arc<Ways>,
}

enum Recalled {
    Fresh(Arc<FoundCard>),
    Stale(Arc<FoundCard>),
    Failed(ClientError),
    Nothing,
}

impl Known {
    fn new(card: Option<Arc<FoundCard>>) -> Self {
        Self { flight: tokio::sync::Mutex::new(()), state: Mutex::new(State { card, ..State::default() }) }
    }

    /// The card, from the agent or as it was a moment ago.
    pub(crate) async fn card(&self, exchange: &Exchange<'_>) -> Result<Arc<FoundCard>, ClientError> {
        match self.recall() {
            Recalled::Fresh(card) => Ok(card),
            Recalled::Failed(error) => Err(error),
            Recalled::Stale(card) => Ok(self.renew(exchange, card).await),
            Recalled::Nothing => self.find(exchange).await,
        }
    }

    fn recall(&self) -> Recalled {
        let (state, now) = (self.state.lock(), Instant::now());
        match (&state.card, &state.failure) {
            (Some(card), _) if card.is_fresh(now) => Recalled::Fresh(Arc::clone(card)),
            (Some(card), _) => Recalled::Stale(Arc::clone(card)),
            (None, Some((error, until))) if *until > now => Recalled::Failed(error.clone()),
            (None, _) => Recalled::Nothing,
        }
    }

    async fn find(&self, exchange: &Exchange<'_>) -> Result<Arc<FoundCard>, ClientError> {
        let _flight = self.flight.lock().await;
        match self.recall() {
            Recalled::Fresh(card) | Recalled::Stale(card) => return Ok(card),
            Recalled::Failed(error) => return Err(error),
            Recalled::Nothing => {}
        }
        match discovery::find(exchange, exchange.place).await {
            Ok(card) => Ok(self.keep(card)),
            Err(error) => {
                let lasts = lasts(&error).map(|lasts| Instant::now() + lasts);
                self.state.lock().failure = lasts.map(|until| (error.clone(), until));
                Err(error)
            }
        }
    }

    /// One caller asks whether it has changed, and not for long; all others take it as it is.
    async fn renew(&self, exchange: &Exchange<'_>, stale: Arc<FoundCard>) -> Arc<FoundCard> {
        let Ok(_flight) = self.flight.try_lock() else { return stale };
        if let Recalled::Fresh(card) = self.recall() {
            return card;
        }
        let renewed = timeout(RENEWAL, discovery::renew(exchange, exchange.place, &stale)).await;
        self.keep(renewed.unwrap_or_else(|_| {
            tracing::warn!("nobody says whether the agent card has changed; the one that is known is used");
            stale.for_a_while()
        }))
    }

    fn keep(&self, card: FoundCard) -> Arc<FoundCard> {
        let card = Arc::new(card);
        let mut state = self.state.lock();
        (state.card, state.failure) = (Some(Arc::clone(&card)), None);
        card
    }

    /// The ways that follow from a card, or from there being none. What has proved right stays as long as the card says
    /// the same.
    pub(crate) fn ways(
        &self,
        card: Option<Arc<FoundCard>>,
        read: impl FnOnce(Option<&FoundCard>) -> Result<Vec<Interface>, ClientError>,
    ) -> Result<Arc<Ways>, ClientError> {
        let mut state = self.state.lock();
        let is_same = |known: &Derived| match (&known.card, &card) {
            (Some(known), Some(card)) => Arc::ptr_eq(known, card),
            (None, None) => true,
            _ => false,
        };
        if let Some(known) = state.ways.as_ref().filter(|known| is_same(known)) {
            return Ok(Arc::clone(&known.ways));
        }
        let interfaces = read(card.as_deref())?;
        let ways = match state.ways.take() {
            Some(known) if known.ways.are(&interfaces) => known.ways,
            _ => Arc::new(Ways::new(interfaces)?),
        };
        state.ways = Some(Derived { card, ways: Arc::clone(&ways) });
        Ok(ways)
    }
}

/// How long a failure counts; none for what is the caller's own.
fn lasts(error: &ClientError) -> Option<Duration> {
    let is_answered = |status: Option<u16>| matches!(status, Some(200..=407 | 409..=428 | 430..=499));
    match error {
        ClientError::Secret(_) | ClientError::Invalid { .. } | ClientError::Address { .. } => None,
        ClientError::NoCard(tried) if tried.iter().all(|tried| is_answered(tried.status)) => Some(ABSENT),
        _ => Some(FAILED),
    }
}
