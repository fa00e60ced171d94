//! Before a message is sent: the agent is waited for, without a place among those that run, and all that its request will
//! say is saved, so that a repetition is the same bytes.

use std::sync::Arc;

use switchboard_a2a::extension::IDEMPOTENCY;
use switchboard_a2a::{ArtifactId, ContextId, Json, SendRequest, TaskId};
use switchboard_client::{CardLookup, ClientError, FoundCard};
use switchboard_egress::SendError;
use switchboard_engine::AgentError;

use super::callbacks::Callbacks;
use super::outage::{OutageBackoff, is_outage};
use super::outgoing::{self, Outgoing};
use super::saved::{Attached, Saved, Sending};
use super::turn::RemoteTurn;
use super::usage;
use crate::registry::BreakerState;

/// What is found out about an agent before a message is sent: its card, or that it answers without one.
type Reached = Result<Option<Arc<FoundCard>>, ClientError>;

impl RemoteTurn<'_> {
    /// Waits for the agent and saves that the message is about to be sent. Nothing if the task has ended over it.
    pub(super) async fn prepare(
        &mut self,
        answers: Option<Attached>,
        before: &[TaskId],
        backoff: &mut OutageBackoff,
    ) -> Result<Option<Sending>, AgentError> {
        let card = match self.reach(backoff).await? {
            Ok(card) => card,
            Err(error) => {
                self.give_up_unsent(&error).await?;
                return Ok(None);
            }
        };
        let card = card.as_deref().map(|found| &found.card);
        if let Some(card) = card {
            self.context.extensions = outgoing::extensions(&card.capabilities.extensions, &self.turn);
        }
        let keyed =
            card.is_some_and(|card| card.capabilities.extensions.iter().any(|extension| extension.uri == IDEMPOTENCY));
        let pushes = card.is_some_and(|card| card.capabilities.push_notifications == Some(true));
        let callbacks = self.parts.callbacks.as_ref().filter(|_| pushes);
        let earlier: Vec<ArtifactId> =
            self.task.snapshot().artifacts.into_iter().map(|artifact| artifact.artifact_id).collect();
        let chain = match self.chain.take() {
            Some(chain) => Ok(chain),
            None => self.task.delegation_chain().await,
        };
        let chain = chain.map_err(|error| AgentError::new(format!("the delegation chain cannot be read: {error}")))?;
        let context = if answers.is_some() { None } else { self.noted_context().await? };
        let sending = Sending {
            turn: self.turn.seq.0,
            keyed,
            url: Some(self.parts.url.clone()),
            answers,
            earlier,
            before: before.to_vec(),
            used: usage::of_task(&self.task.snapshot()),
            context,
            callback: callbacks.map(|callbacks| callbacks.address(self.task.id())),
            chain: Json::from_serialize(&chain).ok(),
            stamps: outgoing::stamps(card, &self.turn),
        };
        self.task.save_committed(&Saved::Sending(sending.clone())).await?;
        Ok(Some(sending))
    }

    /// An agent that is away is waited for, aside.
    async fn reach(&self, backoff: &mut OutageBackoff) -> Result<Reached, AgentError> {
        // Most agents answer at once, and need not give up their permit for that. A card that is known costs no request.
        let may_answer = !backoff.has_begun() && self.parts.breaker.state() == BreakerState::Closed;
        if let Some(permit) = may_answer.then(|| self.allowed().ok()).flatten() {
            let CardLookup { card, was_asked } = self.parts.client.look_up_card(&self.context).await;
            let card = if was_asked { self.called(&permit, card) } else { card };
            match card {
                Err(error) if is_outage(&error) => {}
                card => return Ok(reached(card)),
            }
        }
        let look = async {
            let mut error = None;
            loop {
                let at_least = self.parts.breaker.reopens_in();
                match backoff.wait(self.parts.clock.monotonic(), at_least) {
                    Some(wait) => self.parts.clock.sleep(wait).await,
                    None => return Err(error.or_else(|| backoff.why()).unwrap_or_else(unreachable_for_now)),
                }
                let Ok(permit) = self.allowed() else { continue };
                match self.called(&permit, self.parts.client.refresh_card(&self.context).await) {
                    Err(away) if is_outage(&away) => error = Some(away),
                    card => return reached(card),
                }
            }
        };
        Ok(self.task.release_permit_while(look).await?)
    }

    /// The request, as it was saved.
    pub(super) async fn request(&self, sending: &Sending) -> Result<SendRequest, AgentError> {
        let token = match &self.parts.callbacks {
            Some(Callbacks { receiver, .. }) if sending.callback.is_some() => {
                let opened = receiver.open(self.task.id()).await;
                Some(opened.map_err(|error| AgentError::new(format!("no callback could be opened: {error}")))?)
            }
            _ => None,
        };
        let to = Outgoing { task: self.task.id(), sending, token };
        Ok(outgoing::request(&self.turn, &self.context, &self.origin, to))
    }

    /// The conversation there that belongs to the one here.
    async fn noted_context(&self) -> Result<Option<ContextId>, AgentError> {
        let noted = self.task.noted().await?;
        let noted = noted.and_then(|noted| noted.read::<serde_json::Value>().ok());
        let context = noted.and_then(|noted| noted["contextId"].as_str().map(ContextId::from));
        self.noted.lock().clone_from(&context);
        Ok(context)
    }
}

fn reached(card: Result<Arc<FoundCard>, ClientError>) -> Reached {
    match card {
        Ok(card) => Ok(Some(card)),
        Err(error @ ClientError::NoCard(_)) if !is_outage(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a message hears that waited for the breaker of its agent.
pub(super) fn unreachable_for_now() -> ClientError {
    ClientError::Unreachable { origin: "the agent".to_owned(), error: SendError::Broken }
}
