//! The job `notify`: tells one of those who are told of the end of a run. It is tried again as webhooks are, and given up with
//! a line of the journal.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use switchboard_a2a::{Json, Message, MessageId, Metadata, Part, Role, TaskState};
use switchboard_engine::store::TaskRow;
use switchboard_engine::store::feed::{JournalLine, topic_segment};
use switchboard_engine::store::hub::ClaimedJob;
use switchboard_engine::store::lineage::Via;
use switchboard_engine::{Address, CHAIN_KEY, Caller, Error, IncomingMessage};
use switchboard_webhooks::{PostOutcome, Secret, SignedPost};

use super::completed::OwedNotice;
use super::notifier::{Form, Notifier};
use crate::dispatch::DispatchHints;
use crate::hub::HubState;
use crate::jobs::{JobKind, JobOutcome};
use crate::journal_text::shortened;
use crate::reply;
use crate::task_rows::owner_of;

/// The kind of these jobs.
pub(crate) const NOTIFY_KIND: &str = "notify";
/// Characters of a message of Discord, which takes 2,000, with some left for what stands around them.
const PIECE: usize = 1_850;
/// Pieces of a text at most; the rest is cut.
const PIECES: usize = 20;
/// The longest text that is handed on.
const TEXT_BYTES: usize = 64 << 10;
const SOON: Duration = Duration::from_secs(1);

/// Runs jobs of this kind.
pub(crate) struct NotifyJobs {
    pub(crate) hub: Arc<HubState>,
}

/// Why somebody was not told.
enum Untold {
    /// It is tried again, not before a while.
    Retry {
        after: Option<Duration>,
        problem: String,
    },
    /// It was not tried for a reason of this server.
    Later,
    GivenUp(String),
}

impl JobKind for NotifyJobs {
    fn run<'a>(&'a self, claimed: &'a ClaimedJob) -> BoxFuture<'a, JobOutcome> {
        async move {
            let Ok(mut owed) = serde_json::from_slice::<OwedNotice>(&claimed.job.body) else {
                tracing::error!(job = claimed.job.name, "the body of a job cannot be read");
                return JobOutcome::Done;
            };
            match self.tell(&mut owed).await {
                Ok(()) => JobOutcome::Done,
                Err(Untold::Later) => JobOutcome::Changed(SOON, body(&owed)),
                Err(Untold::GivenUp(problem)) => self.give_up(&owed, &problem).await,
                Err(Untold::Retry { after, problem }) => {
                    owed.attempts += 1;
                    let (hub, now) = (&self.hub, self.hub.parts.clock.now());
                    match hub.ceremonies.posts.next_attempt(owed.attempts, after, now) {
                        Some(at) => {
                            let wait = u64::try_from(at.0.saturating_sub(now.0)).unwrap_or(0);
                            tracing::info!(ceremony = owed.ceremony, problem, "the end of a run is told again later");
                            JobOutcome::Changed(Duration::from_millis(wait), body(&owed))
                        }
                        None => self.give_up(&owed, &format!("{problem}, and it was the last attempt")).await,
                    }
                }
            }
        }
        .boxed()
    }

    /// Receivers that do not answer take no more than their part of the places.
    fn lane(&self, _claimed: &ClaimedJob) -> Option<String> {
        Some(NOTIFY_KIND.to_owned())
    }
}

fn body(owed: &OwedNotice) -> Bytes {
    Bytes::from(serde_json::to_vec(owed).unwrap_or_default())
}

impl NotifyJobs {
    async fn tell(&self, owed: &mut OwedNotice) -> Result<(), Untold> {
        let given_up = |problem: &str| Untold::GivenUp(problem.to_owned());
        let notifier = Notifier::read(&owed.notifier).ok_or_else(|| given_up("it cannot be read"))?;
        let row = self.hub.parts.store.row(&owed.task).await.map_err(|error| retry(&error))?;
        let row = row.ok_or_else(|| given_up("the task was deleted before (store.retention)"))?;
        let text = self.text(&row).await?;
        match notifier {
            Notifier::Stdout => self.print(owed, &text).await,
            Notifier::Agent(agent) => self.send(owed, &row, &agent, &text).await,
            Notifier::Webhook { url_env, secret_env, form } => {
                self.post(owed, &row, (&url_env, secret_env.as_deref()), form, &text).await
            }
        }
    }

    /// What the run has come to, in words.
    async fn text(&self, row: &TaskRow) -> Result<String, Untold> {
        let reading = self.hub.engine.get(&Address::Root, &owner_of(row), &row.task.id).await;
        let task = match reading.and_then(switchboard_engine::TaskReading::into_task) {
            Ok(task) => task,
            Err(error) => return Err(Untold::Retry { after: None, problem: error.to_string() }),
        };
        let text = match task.status.state {
            TaskState::Completed => reply::text(&task),
            _ => reply::failure(&task),
        };
        Ok(text[..text.floor_char_boundary(TEXT_BYTES)].to_owned())
    }

    fn title(&self, owed: &OwedNotice) -> String {
        let found = self.hub.ceremonies.table.find(&owed.ceremony);
        found.map_or_else(|| owed.ceremony.clone(), |ceremony| ceremony.definition.title().to_owned())
    }

    /// What others have written is printed without what a terminal would take for a command.
    async fn print(&self, owed: &OwedNotice, text: &str) -> Result<(), Untold> {
        let line = format!("{} {} {}: {text}", owed.at, self.title(owed), owed.state);
        let shown: String = line.chars().map(|letter| if is_plain(letter) { letter } else { '\u{fffd}' }).collect();
        let print = move || {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{shown}").and_then(|()| out.flush())
        };
        match tokio::task::spawn_blocking(print).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Untold::GivenUp(error.to_string())),
            Err(error) => Err(Untold::GivenUp(error.to_string())),
        }
    }

    async fn send(&self, owed: &OwedNotice, row: &TaskRow, agent: &str, text: &str) -> Result<(), Untold> {
        let hub = &*self.hub;
        let owner = match hub.ceremonies.caller(&row.task.owner) {
            Some(owner) => owner,
            None => return Err(Untold::GivenUp("the key of its owner is revoked".to_owned())),
        };
        // What is told counts as deep as what it is told of, so that agents who tell each other come to an end.
        let chain = hub.engine.chain_after(row.key).await.map_err(|error| unsent(&error))?;
        let mut metadata = Metadata::default();
        if let Some(chain) = chain.and_then(|chain| Json::from_serialize(&chain).ok()) {
            metadata.insert(CHAIN_KEY, chain);
        }
        let hints = DispatchHints { targets: vec![agent.to_owned()], ..DispatchHints::default() };
        let key = format!("switchboard:notify:{}:{agent}", owed.task);
        let message = Message {
            // One for each agent and run.
            message_id: MessageId::from(key.clone()),
            context_id: None,
            task_id: None,
            role: Role::User,
            parts: vec![Part::text(format!("{} is {}: {text}", self.title(owed), owed.state))],
            metadata: Some(metadata),
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        };
        let incoming = IncomingMessage {
            address: Address::Root,
            message,
            accepted_output_modes: Vec::new(),
            metadata: Json::from_serialize(&hints).ok().and_then(|hints| hints.read().ok()),
            idempotency_key: Some(key),
            trace: None,
            push_config: None,
            webhook: None,
            return_immediately: true,
            streaming: false,
        };
        self.deliver(&owner, incoming).await
    }

    async fn deliver(&self, owner: &Caller, incoming: IncomingMessage) -> Result<(), Untold> {
        let engine = &self.hub.engine;
        let sent = match engine.route(owner, incoming).await {
            Ok(routed) => engine.send(routed.via(Via::Cron)).await,
            Err(error) => Err(error),
        };
        match sent {
            Ok(_) | Err(Error::KeyReused | Error::MessageIdReused(_)) => Ok(()),
            Err(_) if engine.closing().is_cancelled() => Err(Untold::Later),
            Err(error) => Err(unsent(&error)),
        }
    }

    async fn post(
        &self,
        owed: &mut OwedNotice,
        row: &TaskRow,
        (url_env, secret_env): (&str, Option<&str>),
        form: Form,
        text: &str,
    ) -> Result<(), Untold> {
        let (hub, now) = (&*self.hub, self.hub.parts.clock.now());
        let missing = |problem: String| Untold::Retry { after: None, problem };
        for variable in [Some(url_env), secret_env].into_iter().flatten() {
            if !hub.ceremonies.may_use(&owed.ceremony, variable) {
                let problem =
                    format!("{variable} is not a variable that registrations may use (hub.registrations.env)");
                return Err(Untold::GivenUp(problem));
            }
        }
        // It may be there when it is looked for again.
        let url = std::env::var(url_env).map_err(|_| missing(format!("the variable {url_env} is not set")))?;
        let secrets = match secret_env {
            None => hub.ceremonies.posts.secrets_of(&row.task.owner, now).await.map_err(|error| retry(&error))?,
            Some(variable) => {
                let text =
                    std::env::var(variable).map_err(|_| missing(format!("the variable {variable} is not set")))?;
                let problem =
                    || format!("the variable {variable} holds no signing secret: whsec_ and its bytes in base64");
                vec![Secret::parse(text.trim()).ok_or_else(|| missing(problem()))?]
            }
        };
        let title = self.title(owed);
        let bodies = match form {
            Form::Json => vec![json!({
                "ceremony": owed.ceremony,
                "name": title,
                "taskId": owed.task,
                "state": owed.state,
                "at": owed.at,
                "text": text,
            })],
            Form::Discord => discord(&format!("**{title}**: {}\n{text}", owed.state)),
        };
        let stopping = hub.engine.closing();
        for (number, body) in bodies.into_iter().enumerate().skip(owed.pieces) {
            let id = format!("notify:{}:{number}", owed.task);
            let post = SignedPost {
                url: url.trim().to_owned(),
                id,
                body: Bytes::from(body.to_string()),
                secrets: secrets.clone(),
            };
            let attempt = tokio::select! {
                attempt = hub.ceremonies.posts.send(&post, now) => attempt,
                () = stopping.cancelled() => return Err(Untold::Later),
            };
            match attempt.outcome {
                PostOutcome::Delivered => owed.pieces = number + 1,
                PostOutcome::Crowded => return Err(Untold::Later),
                PostOutcome::Refused => return Err(Untold::GivenUp(attempt.problem)),
                PostOutcome::Retry { after } => return Err(Untold::Retry { after, problem: attempt.problem }),
            }
        }
        Ok(())
    }

    async fn give_up(&self, owed: &OwedNotice, problem: &str) -> JobOutcome {
        tracing::warn!(ceremony = owed.ceremony, task = %owed.task, problem, "somebody is not told of the end of a run");
        let payload = json!({ "ceremony": owed.ceremony, "to": owed.notifier, "problem": shortened(problem) });
        let line = JournalLine {
            at: self.hub.parts.clock.now(),
            owner: None,
            task: Some(owed.task.clone()),
            topic: format!("hub.ceremony.untold.{}", topic_segment(&owed.ceremony)),
            payload: Bytes::from(payload.to_string()),
        };
        self.hub.ceremonies.tell(vec![line]).await;
        JobOutcome::Done
    }
}

fn retry(error: &switchboard_engine::store::StoreError) -> Untold {
    Untold::Retry { after: None, problem: error.to_string() }
}

fn unsent(error: &Error) -> Untold {
    match error {
        Error::Unavailable { retry_after_ms, .. } => {
            let after = Some(Duration::from_millis(*retry_after_ms));
            Untold::Retry { after, problem: error.to_string() }
        }
        _ => Untold::GivenUp(error.to_string()),
    }
}

fn is_plain(letter: char) -> bool {
    letter == '\n' || letter == '\t' || !letter.is_control()
}

/// A text as messages of Discord, which mention nobody. A text is cut at the end of a line where there is one.
fn discord(text: &str) -> Vec<Value> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() && pieces.len() < PIECES {
        let end = rest.char_indices().nth(PIECE).map_or(rest.len(), |(end, _)| end);
        let piece = &rest[..end];
        let cut = match rest.len() > end {
            true => piece.rfind('\n').map_or(end, |line| line + 1),
            false => end,
        };
        pieces.push(json!({ "content": &rest[..cut], "allowed_mentions": { "parse": [] } }));
        rest = &rest[cut..];
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_several_messages_that_are_cut_at_lines_and_mention_nobody() {
        let line = format!("{}\n", "é".repeat(99));
        let text = line.repeat(40);
        let pieces = discord(&text);
        let contents: Vec<&str> = pieces.iter().filter_map(|piece| piece["content"].as_str()).collect();
        assert_eq!(contents.concat(), text);
        assert_eq!(contents.iter().map(|piece| piece.chars().count()).collect::<Vec<_>>(), [1_800, 1_800, 400]);
        assert_eq!(pieces[0]["allowed_mentions"], json!({ "parse": [] }));
        let unbroken: Vec<usize> = discord(&"x".repeat(4_000))
            .iter()
            .map(|piece| piece["content"].as_str().unwrap_or_default().len())
            .collect();
        assert_eq!(unbroken, [1_850, 1_850, 300]);
        assert_eq!(discord(&"x".repeat(100_000)).len(), PIECES);
    }
}
