//! One turn of a remote agent: sends its message if that was not done before, and follows the remote task, over as many
//! streams as it takes, until the task ends, waits for an answer, or is given up.

use std::time::Duration;

use serde_json::json;
use switchboard_a2a::extension::IDEMPOTENCY;
use switchboard_a2a::{
    ArtifactId, ContextId, Json, Message, Metadata, Role, SendRequest, StreamResponse, Task, TaskState,
};
use switchboard_client::{CallContext, ClientError, FoundCard, TaskStream, Update};
use switchboard_engine::reason::{REASON_DETAIL_KEY, Reason};
use switchboard_engine::{AgentError, TaskHandle, Turn};

use super::RemoteParts;
use super::away::{Away, is_away, is_not_sent};
use super::find::Found;
use super::follow::{Followed, LostStream};
use super::outgoing::{self, Outgoing};
use super::plan::{Plan, plan};
use super::saved::{Attached, Saved, Sending};
use super::settings::Resend;
use super::tell::Teller;
use super::translate;
use crate::metric_definitions as metric;
use crate::registry::{RequestOutcome, RequestSource};

/// Metadata key of how long a caller should wait before it sends again.
const RETRY_AFTER_KEY: &str = "switchboard/retryAfterMs";

pub(super) struct RemoteTurn<'a> {
    pub(super) parts: &'a RemoteParts,
    pub(super) turn: Turn,
    pub(super) task: TaskHandle,
    pub(super) context: CallContext,
}

/// What is known of the remote task.
pub(super) enum Link {
    Sending(Sending),
    Attached(Attached),
}

/// What opens the next stream.
enum Next {
    Send(Sending),
    Find(Sending),
    Resume(Attached, Box<Task>),
}

impl<'a> RemoteTurn<'a> {
    pub(super) fn new(parts: &'a RemoteParts, turn: Turn, task: TaskHandle) -> Self {
        let context = outgoing::call_context(task.id(), &turn);
        Self { parts, turn, task, context }
    }

    pub(super) async fn run(self) -> Result<(), AgentError> {
        let saved = self.turn.saved.as_ref().and_then(Saved::read);
        let next = match plan(saved, self.turn.seq.0, &self.turn.cause) {
            Plan::Follow(attached) => self.resume(attached),
            Plan::Find(sending) if sending.keyed => Next::Send(sending),
            Plan::Find(sending) => Next::Find(sending),
            Plan::Send { answers } => match self.prepare(answers).await? {
                Some(sending) => Next::Send(sending),
                None => return Ok(()),
            },
        };
        self.follow_to_its_end(next).await
    }

    fn resume(&self, attached: Attached) -> Next {
        let told = translate::told(self.task.snapshot(), &attached);
        Next::Resume(attached, Box::new(told))
    }

    /// Waits for the agent and saves that the message is about to be sent. Nothing if the task has ended over it.
    async fn prepare(&self, answers: Option<Attached>) -> Result<Option<Sending>, AgentError> {
        let card = match self.reach().await? {
            Ok(card) => card,
            Err(error) => {
                self.give_up_unsent(&error).await?;
                return Ok(None);
            }
        };
        let keyed = card.is_some_and(|found| {
            found.card.capabilities.extensions.iter().any(|extension| extension.uri == IDEMPOTENCY)
        });
        let earlier: Vec<ArtifactId> =
            self.task.snapshot().artifacts.into_iter().map(|artifact| artifact.artifact_id).collect();
        let sending = Sending { turn: self.turn.seq.0, keyed, answers, earlier };
        self.task.save_committed(&Saved::Sending(sending.clone())).await?;
        Ok(Some(sending))
    }

    /// The agent's card, or nothing if it answers without one. An agent that is away is waited for, aside.
    async fn reach(&self) -> Result<Result<Option<std::sync::Arc<FoundCard>>, ClientError>, AgentError> {
        // Most agents answer at once, and need not give up their permit for that.
        if self.parts.breaker.allow().is_ok() {
            match self.called(self.parts.client.card(&self.context).await) {
                Ok(card) => return Ok(Ok(Some(card))),
                Err(error) if is_away(&error) => {}
                Err(ClientError::NoCard(_)) => return Ok(Ok(None)),
                Err(error) => return Ok(Err(error)),
            }
        }
        let look = async {
            let mut away = Away::new(self.parts.settings.connect_within);
            let mut error = None;
            loop {
                let at_least = self.parts.breaker.reopens_in();
                match away.wait(self.parts.clock.monotonic(), at_least) {
                    Some(wait) => self.parts.clock.sleep(wait).await,
                    None => return Err(error.unwrap_or_else(unreachable_for_now)),
                }
                if self.parts.breaker.allow().is_err() {
                    continue;
                }
                match self.called(self.parts.client.card(&self.context).await) {
                    Ok(card) => return Ok(Some(card)),
                    Err(away) if is_away(&away) => error = Some(away),
                    Err(ClientError::NoCard(_)) => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
        };
        Ok(self.task.release_permit_while(look).await?)
    }

    async fn request(&self, sending: &Sending, card: Option<&FoundCard>) -> Result<SendRequest, AgentError> {
        let pushes = card.is_some_and(|found| found.card.capabilities.push_notifications == Some(true));
        let callback = match &self.parts.callbacks {
            Some(callbacks) if pushes => {
                let opened = callbacks.open(self.task.id()).await;
                Some(opened.map_err(|error| AgentError::new(format!("no callback could be opened: {error}")))?)
            }
            _ => None,
        };
        let context = match &sending.answers {
            Some(answered) => Some(answered.context.clone()),
            None => self.noted_context().await?,
        };
        let answers = sending.answers.as_ref().map(|answered| answered.task.clone());
        let to = Outgoing { task: self.task.id(), context, answers, callback };
        Ok(outgoing::request(&self.turn, to))
    }

    /// The conversation there that belongs to the one here.
    async fn noted_context(&self) -> Result<Option<ContextId>, AgentError> {
        let noted = self.task.noted().await?;
        let noted = noted.and_then(|noted| noted.read::<serde_json::Value>().ok());
        Ok(noted.and_then(|noted| noted["contextId"].as_str().map(ContextId::from)))
    }

    async fn follow_to_its_end(&self, mut next: Next) -> Result<(), AgentError> {
        let settings = &self.parts.settings;
        let (mut away, mut is_repeated) =
            (Away::new(settings.lost_after), matches!(next, Next::Send(_)) && self.has_saved());
        let mut teller = Teller::default();
        loop {
            let (opened, link) = match next {
                Next::Find(sending) => match self.find(&sending).await {
                    Ok(Found::Arrived(attached)) => {
                        self.count_send("adopted");
                        self.attach(&attached).await?;
                        next = self.resume(attached);
                        continue;
                    }
                    Ok(Found::Unknown) if settings.resend == Resend::Safe => {
                        self.count_send("unknown");
                        return Ok(self.give_up_unknown().await?);
                    }
                    Ok(Found::NotSent | Found::Unknown) => {
                        is_repeated = true;
                        next = Next::Send(sending);
                        continue;
                    }
                    Err(error) => (Err(error), Link::Sending(sending)),
                },
                Next::Send(sending) => {
                    let card = self.parts.client.card(&self.context).await.ok();
                    let request = self.request(&sending, card.as_deref()).await?;
                    let opened = self.called(self.parts.client.stream(&self.context, request).await);
                    if let Err(error) = &opened {
                        self.count_send("failed");
                        match self.after_failed_send(sending, error).await? {
                            Some(again) => (opened, again),
                            None => return Ok(()),
                        }
                    } else {
                        self.count_send(if is_repeated { "repeated" } else { "sent" });
                        (opened, Link::Sending(sending))
                    }
                }
                Next::Resume(attached, told) => {
                    teller.is_named |= translate::names(&self.task.snapshot(), &attached);
                    let opened = self.parts.client.resume(&self.context, attached.task.clone(), *told).await;
                    (self.called(opened), Link::Attached(attached))
                }
            };
            let (error, link, told) = match opened {
                Err(error) => (error, link, None),
                Ok(stream) => match self.follow(stream, link, &mut teller).await? {
                    Followed::Over => return Ok(()),
                    Followed::Lost(lost) => {
                        let LostStream { error, link, told, had_news } = *lost;
                        if had_news {
                            away.is_back();
                        }
                        (error, link, told)
                    }
                },
            };
            if !is_away(&error) {
                return self.give_up_on(link, &error, &mut teller).await;
            }
            let at_least = self.parts.breaker.reopens_in();
            let Some(wait) = away.wait(self.parts.clock.monotonic(), at_least) else {
                return Ok(self.give_up_lost(&error).await?);
            };
            tokio::select! {
                () = self.parts.clock.sleep(wait) => {}
                () = self.task.canceled(), if matches!(link, Link::Sending(_)) => {}
            }
            is_repeated = true;
            next = match link {
                Link::Sending(sending) if sending.keyed || is_not_sent(&error) => Next::Send(sending),
                Link::Sending(sending) => Next::Find(sending),
                Link::Attached(attached) => match told {
                    Some(told) => Next::Resume(attached, Box::new(told)),
                    None => self.resume(attached),
                },
            };
        }
    }

    fn has_saved(&self) -> bool {
        let saved = self.turn.saved.as_ref().and_then(Saved::read);
        matches!(saved, Some(Saved::Sending(sending)) if sending.turn == self.turn.seq.0)
    }

    /// What is sent or looked for next after a send that has failed. Nothing if the task has ended over it.
    async fn after_failed_send(&self, sending: Sending, error: &ClientError) -> Result<Option<Link>, AgentError> {
        if is_not_sent(error) && self.task.is_canceled() {
            return Err(switchboard_engine::Stopped::Canceled.into());
        }
        // An answer to a task that has ended there meanwhile begins another one.
        if !is_away(error) && sending.answers.is_some() && matches!(error, ClientError::Agent(_)) {
            let told = sending.answers.clone().map(|attached| self.resume(attached));
            if let Some(Next::Resume(attached, _)) = told {
                return Ok(Some(Link::Attached(attached)));
            }
        }
        if !is_away(error) {
            self.give_up_unsent(error).await?;
            return Ok(None);
        }
        Ok(Some(Link::Sending(sending)))
    }

    /// Saves which remote task is followed from now on.
    pub(super) async fn attach(&self, attached: &Attached) -> Result<(), AgentError> {
        self.task.save(&Saved::Attached(attached.clone())).await?;
        if self.noted_context().await?.as_ref() != Some(&attached.context) && !attached.context.as_str().is_empty() {
            self.task.note(&json!({ "contextId": attached.context })).await?;
        }
        Ok(())
    }

    /// Records a call with the breaker.
    pub(super) fn called<T>(&self, result: Result<T, ClientError>) -> Result<T, ClientError> {
        self.parts.breaker.record(RequestSource::Task(self.task.id()), RequestOutcome::of(&result));
        result
    }

    fn count_send(&self, outcome: &'static str) {
        let agent = self.parts.name.to_string();
        metrics::counter!(metric::REMOTE_SENDS, "agent" => agent, "outcome" => outcome).increment(1);
    }

    /// The agent could not be reached, or has refused the message.
    async fn give_up_unsent(&self, error: &ClientError) -> Result<(), AgentError> {
        if is_away(error) {
            let retry = self.parts.settings.connect_within;
            let text = format!("{} cannot be reached: {error}", self.parts.name);
            return Ok(self.fail("unavailable", &text, Some(retry)).await?);
        }
        let detail = match error {
            ClientError::Credentials { .. } | ClientError::Secret(_) => "credentials",
            _ => "refused",
        };
        Ok(self.fail(detail, &format!("{} has not taken the message: {error}", self.parts.name), None).await?)
    }

    async fn give_up_unknown(&self) -> Result<(), switchboard_engine::Stopped> {
        let text = format!(
            "the server stopped while it sent the message to {}, and it cannot be found out whether it has arrived; \
             look there before you send it again",
            self.parts.name
        );
        self.task.fail_because(Reason::Interrupted, Some("send_unknown"), text).await
    }

    async fn give_up_lost(&self, error: &ClientError) -> Result<(), switchboard_engine::Stopped> {
        let text = format!("{} cannot be reached any more: {error}", self.parts.name);
        self.fail("unreachable", &text, None).await
    }

    /// The agent says something about the task that ends the matter. If it no longer knows a task that it has ended, what
    /// it has told of the end counts.
    async fn give_up_on(&self, link: Link, error: &ClientError, teller: &mut Teller) -> Result<(), AgentError> {
        let end = self.notified_end().await;
        if let (Link::Attached(attached), Some(end)) = (&link, end) {
            let is_its = match &end {
                StreamResponse::Task(task) => task.id == attached.task,
                StreamResponse::StatusUpdate(update) => update.task_id == attached.task,
                _ => false,
            };
            if is_its {
                self.tell(teller, attached, Update::Event(Box::new(end))).await?;
                return Ok(());
            }
        }
        let text = format!("{} does not go on with its task: {error}", self.parts.name);
        Ok(self.fail("remote_lost", &text, None).await?)
    }

    async fn fail(&self, detail: &str, text: &str, retry: Option<Duration>) -> Result<(), switchboard_engine::Stopped> {
        let mut metadata = Metadata::default();
        if let Ok(detail) = Json::from_serialize(detail) {
            metadata.insert(REASON_DETAIL_KEY, detail);
        }
        let retry = retry.and_then(|retry| u64::try_from(retry.as_millis()).ok());
        if let Some(retry) = retry.and_then(|retry| Json::from_serialize(&retry).ok()) {
            metadata.insert(RETRY_AFTER_KEY, retry);
        }
        let message = Message::text(Role::Agent, text);
        self.task.say(TaskState::Failed, Some(message), Some(metadata)).await
    }
}

/// What a message hears that waited for the breaker of its agent.
fn unreachable_for_now() -> ClientError {
    let error = switchboard_egress::SendError::Broken;
    ClientError::Unreachable { origin: "the agent".to_owned(), error }
}

/// A stream and the task it is about.
pub(super) fn task_of(stream: &TaskStream) -> Option<(switchboard_a2a::TaskId, ContextId)> {
    let context = stream.task().map(|task| task.context_id.clone()).unwrap_or_default();
    stream.task_id().map(|task| (task, context))
}
