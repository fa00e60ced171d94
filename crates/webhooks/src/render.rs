//! Renders the next delivery of a webhook from its task's log: which events it gets, in which form, and how many at once.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_a2a::{
    Dialect, PushPayload, StreamResponse, TaskArtifactUpdate, TaskState, Timestamp, Version, encode,
};
use switchboard_engine::store::webhooks::{DeliveryRow, NewDelivery, WebhookRow};
use switchboard_engine::{
    Directory, Error, EventKind, LogReader, LoggedEvent, Seq, StreamEnd, Switches, WebhookEvents, state_label,
};

use crate::config::Config;
use crate::merge::merge;

/// How much of a log is read at once.
const READ_BYTES: usize = 256 << 10;
/// Bodies with a whole task are rendered one at a time if its log is larger than this.
const HEAVY_BYTES: usize = 256 << 10;
/// The same for bodies with one event: a log of this size may hold a large one.
const HEAVY_EVENTS_BYTES: usize = 1 << 20;
/// The default of limits.event.
const LARGEST_EVENT: usize = 8 << 20;
/// Updates of one artifact are merged up to about this size.
const MERGED_BYTES: usize = 256 << 10;

/// The form of a body. Its number, the index in [`Self::ALL`], is stored with the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) version: Version,
    payload: PushPayload,
}

impl Form {
    const ALL: [Self; 6] = [
        Self { version: Version::V1, payload: PushPayload::StreamResponse },
        Self { version: Version::V1, payload: PushPayload::Task },
        Self { version: Version::V1, payload: PushPayload::StatusUpdate },
        Self { version: Version::V03, payload: PushPayload::StreamResponse },
        Self { version: Version::V03, payload: PushPayload::Task },
        Self { version: Version::V03, payload: PushPayload::StatusUpdate },
    ];

    /// The payload of the configuration, or else of the agent's settings, or else the default of the version.
    fn of(config: &Config, switches: &Switches) -> Self {
        let default = if config.v03 { PushPayload::Task } else { PushPayload::StreamResponse };
        Self { version: config.version(), payload: config.push.payload.or(switches.webhook_payload).unwrap_or(default) }
    }

    fn number(self) -> u8 {
        Self::ALL.iter().position(|form| *form == self).and_then(|index| u8::try_from(index).ok()).unwrap_or(0)
    }

    pub(crate) fn numbered(number: u8) -> Self {
        Self::ALL[usize::from(number).min(Self::ALL.len() - 1)]
    }

    /// Version 0.3 is written as on JSON-RPC, over whichever binding the webhook was set.
    fn dialect(self) -> Dialect {
        match self.version {
            Version::V1 => Dialect::V1,
            Version::V03 => Dialect::V03Rpc,
        }
    }
}

/// The largest body that is stored with a pending delivery. A larger one is rendered again from the log, which gives the
/// same bytes: a large task with a hundred webhooks must not be written a hundred times.
pub(crate) const KEPT_BYTES: usize = 64 << 10;

pub(crate) enum Next {
    Delivery(Box<RenderedDelivery>),
    /// No wanted event up to `seen`, in so many bytes of the log.
    Nothing {
        seen: Seq,
        bytes: usize,
    },
}

pub(crate) struct RenderedDelivery {
    /// Without its body if that is large.
    pub(crate) delivery: NewDelivery,
    pub(crate) body: Bytes,
    /// It reports a terminal state.
    pub(crate) is_last: bool,
}

/// Renders the deliveries of one webhook.
pub(crate) struct Renderer {
    log: LogReader,
    form: Form,
    events: WebhookEvents,
    late: bool,
    /// Where a stream of version 0.3 ends, which its events say (`final`), see [`LoggedEvent::frame`].
    until: StreamEnd,
    /// The size of the log.
    task_bytes: usize,
}

impl Renderer {
    /// Whether rendering may take a core or much memory for a while.
    pub(crate) fn is_heavy(&self) -> bool {
        self.task_bytes > if self.holds_task() { HEAVY_BYTES } else { HEAVY_EVENTS_BYTES }
    }

    /// The size of a body at most, as far as is known before it is rendered.
    pub(crate) fn expected_bytes(&self) -> usize {
        if self.holds_task() { self.task_bytes } else { self.task_bytes.min(LARGEST_EVENT) }
    }

    fn holds_task(&self) -> bool {
        self.late || self.form.payload != PushPayload::StreamResponse
    }

    /// Drops a large fold, so that it is not held during an attempt.
    pub(crate) fn release_if_large(&mut self) {
        if self.log.held_bytes() > HEAVY_BYTES {
            self.log.let_go();
        }
    }

    pub(crate) fn into_log(self) -> LogReader {
        self.log
    }

    pub(crate) fn new(log: LogReader, directory: &dyn Directory, webhook: &WebhookRow, config: &Config) -> Self {
        let switches = directory.find(&webhook.agent).map(|hosted| hosted.served().switches.clone());
        let switches = switches.unwrap_or_default();
        let until = if switches.v03_close_on_interrupt { StreamEnd::Interrupted } else { StreamEnd::Terminal };
        Self {
            log,
            until,
            form: Form::of(config, &switches),
            events: switches.webhook_events,
            late: webhook.late,
            task_bytes: usize::try_from(webhook.task_bytes).unwrap_or(usize::MAX),
        }
    }

    /// The webhook has its first delivery, so it no longer begins with the whole task.
    pub(crate) fn has_begun(&mut self) {
        self.late = false;
    }

    /// The next delivery after an event.
    pub(crate) async fn next(&mut self, after: Seq, at: Timestamp) -> Result<Next, Error> {
        let (mut seen, mut bytes) = (after, 0);
        loop {
            let events = self.log.after(seen, READ_BYTES).await?;
            let Some(last) = events.last() else { return Ok(Next::Nothing { seen, bytes }) };
            seen = last.seq;
            bytes += events.iter().map(|event| event.line.len()).sum::<usize>();
            let Some(index) = events.iter().position(|event| self.wants(event.kind)) else { continue };
            let first = &events[index];
            return match first.kind {
                EventKind::Artifact => {
                    let (last, body) = self.artifact(self.form, &events[index..], None).await?;
                    Ok(made(first.seq, &last, self.form, body, at))
                }
                _ => {
                    // A webhook that was set late begins with the whole task.
                    let form = match (self.late, self.form.payload) {
                        (true, PushPayload::StreamResponse) => Form { payload: PushPayload::Task, ..self.form },
                        _ => self.form,
                    };
                    let body = self.status(form, first).await?;
                    self.late = false;
                    Ok(made(first.seq, first, form, body, at))
                }
            };
        }
    }

    /// Renders the body of a stored delivery once more.
    pub(crate) async fn again(&mut self, delivery: &DeliveryRow) -> Result<Bytes, Error> {
        let form = Form::numbered(delivery.form);
        let events = self.log.after(Seq(delivery.first.0.saturating_sub(1)), READ_BYTES).await?;
        let Some(first) = events.first().filter(|event| event.seq == delivery.first) else {
            return Err(gone());
        };
        if first.kind != EventKind::Artifact {
            return self.status(form, first).await;
        }
        match self.artifact(form, &events, Some(delivery.last.seq)).await? {
            (last, body) if last.seq == delivery.last.seq => Ok(body),
            _ => Err(gone()),
        }
    }

    fn wants(&self, kind: EventKind) -> bool {
        match kind {
            EventKind::Internal => false,
            EventKind::Artifact => {
                self.events == WebhookEvents::All && self.form.payload == PushPayload::StreamResponse
            }
            EventKind::Status(state) => {
                self.events != WebhookEvents::Stops || state.is_terminal() || state.is_interrupted()
            }
        }
    }

    /// An artifact update merged with those of the same artifact right behind it, up to an event or else up to
    /// [`MERGED_BYTES`], and the last of them.
    async fn artifact(
        &self,
        form: Form,
        events: &[Arc<LoggedEvent>],
        until: Option<Seq>,
    ) -> Result<(Arc<LoggedEvent>, Bytes), Error> {
        let (first, behind) = events.split_first().ok_or_else(gone)?;
        let mut merged: Option<TaskArtifactUpdate> = None;
        let mut last = Arc::clone(first);
        let mut bytes = first.line.len();
        let mut behind = behind.to_vec();
        'joining: loop {
            for event in &behind {
                bytes += event.line.len();
                if until.map_or(bytes > MERGED_BYTES, |until| event.seq > until) {
                    break 'joining;
                }
                match event.kind {
                    EventKind::Internal => continue,
                    EventKind::Status(_) => break 'joining,
                    EventKind::Artifact => {}
                }
                let so_far = match &mut merged {
                    Some(so_far) => so_far,
                    None => merged.insert(artifact_update(first)?),
                };
                if !merge(so_far, &artifact_update(event)?) {
                    break 'joining;
                }
                last = Arc::clone(event);
            }
            let seen = behind.last().map_or(last.seq, |event| event.seq);
            if until.is_some_and(|until| seen >= until) {
                break;
            }
            behind = self.log.after(seen, READ_BYTES).await?;
            if behind.is_empty() {
                break;
            }
        }
        let body = match merged {
            Some(merged) if last.seq != first.seq => {
                let update = StreamResponse::ArtifactUpdate(merged);
                Bytes::from(encode::encode_stream(form.dialect(), &update, false))
            }
            _ => self.frame(form, first)?,
        };
        Ok((last, body))
    }

    async fn status(&mut self, form: Form, event: &LoggedEvent) -> Result<Bytes, Error> {
        if form.payload == PushPayload::StreamResponse {
            return self.frame(form, event);
        }
        let task = self.log.task_as_of(event.seq).await?;
        if form.payload == PushPayload::Task {
            let frame = StreamResponse::Task(task);
            return Ok(Bytes::from(encode::encode_stream(form.dialect(), &frame, false)));
        }
        let StreamResponse::StatusUpdate(update) = parsed(event)? else { return Err(gone()) };
        let made = task.artifacts.last().filter(|_| update.status.state == TaskState::Completed);
        let is_final = self.until.ends_at(event.kind);
        Ok(Bytes::from(encode::encode_status_with_artifact(form.dialect(), &update, is_final, made)))
    }

    /// An event as in a stream.
    fn frame(&self, form: Form, event: &LoggedEvent) -> Result<Bytes, Error> {
        event.frame(form.dialect(), self.until.ends_at(event.kind)).map_err(|error| damaged(&error))
    }
}

fn made(first: Seq, last: &LoggedEvent, form: Form, body: Bytes, at: Timestamp) -> Next {
    let kept = (body.len() <= KEPT_BYTES).then(|| body.clone());
    let (last_at, about) = (last.cursor(), about(last.kind).to_owned());
    let delivery = NewDelivery { first, last: last_at, about, form: form.number(), body: kept, at };
    Next::Delivery(Box::new(RenderedDelivery { delivery, body, is_last: last.kind.is_terminal() }))
}

fn about(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Status(state) => state_label(state),
        _ => "artifact",
    }
}

fn parsed(event: &LoggedEvent) -> Result<StreamResponse, Error> {
    serde_json::from_slice(&event.line).map_err(|error| damaged(&error))
}

fn artifact_update(event: &LoggedEvent) -> Result<TaskArtifactUpdate, Error> {
    match parsed(event)? {
        StreamResponse::ArtifactUpdate(update) => Ok(update),
        _ => Err(gone()),
    }
}

fn damaged(error: &serde_json::Error) -> Error {
    tracing::error!(%error, "the log of a task cannot be read");
    Error::Unavailable { problem: "the log of the task cannot be read".to_owned(), retry_after_ms: 60_000 }
}

fn gone() -> Error {
    Error::Unsupported("the events of this delivery are no longer there".to_owned())
}
