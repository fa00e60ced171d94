//! Emits updates to the reader, and keeps their fold.

use switchboard_a2a::{SendResponse, StreamResponse, Task, TaskState, TaskStatus};

use super::state::{Machine, Origin, Stage};
use super::{Update, catch_up};

impl Machine {
    /// Emits the events between the emitted task and a snapshot.
    pub(super) fn catch_up(&mut self, mut now: Task) {
        let Some(emitted) = &self.emitted.task else { return self.emit(StreamResponse::Task(now)) };
        catch_up::keep_message(&emitted.status, &mut now.status);
        let (events, missing) = catch_up::difference(emitted, &self.emitted.messages, &now, self.emitted.is_snapshot);
        if let Some(missing) = missing {
            self.emit_gap(now.id.clone(), missing);
        }
        if !events.is_empty() {
            // Failures are counted anew.
            self.failures.attempt = 0;
            self.failures.agent_error = None;
        }
        let asks = self.is_polling() && now.status.state.is_interrupted();
        if now.status.state.is_terminal() || asks || events.iter().any(|event| self.ends(event)) {
            self.finish();
        }
        self.ready.extend(events.into_iter().map(|event| Update::Event(Box::new(event))));
        self.emitted.messages.add_all(&now);
        (self.emitted.task, self.emitted.is_snapshot) = (Some(now), true);
        self.forget_request();
    }

    pub(super) fn emit(&mut self, event: StreamResponse) {
        let emitted = &mut self.emitted;
        match (&mut emitted.task, &event) {
            (emitted, StreamResponse::Task(task)) => *emitted = Some(task.clone()),
            (Some(task), event) => drop(task.apply(event)),
            (None, _) => emitted.task = beginning(&event),
        }
        match &event {
            StreamResponse::Task(_) => emitted.is_snapshot = true,
            StreamResponse::ArtifactUpdate(update) => {
                emitted.is_snapshot = false;
                emitted.finished.extend(update.last_chunk.then(|| update.artifact.artifact_id.clone()));
            }
            StreamResponse::StatusUpdate(_) | StreamResponse::Message(_) => {}
        }
        emitted.messages.add(&event);
        self.forget_request();
        let emitted = &self.emitted;
        let state = emitted.task.as_ref().map(|task| task.status.state);
        // After a sent message the snapshot may still show the question it has just answered.
        let asks = matches!((&event, &self.origin), (StreamResponse::Task(_), Origin::Subscribed { .. }))
            && state == Some(TaskState::InputRequired);
        if state.is_some_and(TaskState::is_terminal) || asks || self.ends(&event) {
            self.finish();
        }
        self.ready.push_back(Update::Event(Box::new(event)));
        self.failures.attempt = 0;
        self.failures.agent_error = None;
    }

    /// Drops the message once its task is known: it is not sent again, and its files would be kept for as long as the task
    /// is followed.
    fn forget_request(&mut self) {
        if let (Some(_), Origin::Sent { request, .. }) = (&self.emitted.task, &mut self.origin) {
            *request = None;
        }
    }

    /// Emits an event of another task. What it says was not told of this one.
    pub(super) fn emit_unrelated(&mut self, event: StreamResponse) {
        self.ready.push_back(Update::Event(Box::new(event)));
    }

    pub(super) fn emit_reply(&mut self, event: StreamResponse) {
        if let StreamResponse::Message(message) = &event {
            self.emitted.reply = Some(SendResponse::Message(message.clone()));
        }
        self.ready.push_back(Update::Event(Box::new(event)));
        self.finish();
    }

    /// Emits the response of a blocking send.
    pub(super) fn emit_response(&mut self, answer: SendResponse) {
        self.opened();
        match answer {
            SendResponse::Message(message) => self.emit_reply(StreamResponse::Message(message)),
            SendResponse::Task(task) => {
                let state = task.status.state;
                match state.is_terminal() || state.is_interrupted() {
                    true => self.finish(),
                    false => self.stage = Stage::Polling { idle: 0 },
                }
                self.emit(StreamResponse::Task(task));
            }
        }
    }

    /// Whether an update ends the stream: a terminal state, or an interrupted one, which may last for days.
    pub(super) fn ends(&self, event: &StreamResponse) -> bool {
        let StreamResponse::StatusUpdate(update) = event else { return false };
        let state = update.status.state;
        !self.is_foreign(event) && (state.is_terminal() || state.is_interrupted())
    }

    /// Whether an event belongs to another task.
    pub(super) fn is_foreign(&self, event: &StreamResponse) -> bool {
        let about = match event {
            StreamResponse::Task(task) => &task.id,
            StreamResponse::StatusUpdate(update) => &update.task_id,
            StreamResponse::ArtifactUpdate(update) => &update.task_id,
            StreamResponse::Message(message) => match &message.task_id {
                Some(task) => task,
                None => return false,
            },
        };
        let followed = match (&self.emitted.task, &self.origin) {
            (Some(emitted), _) => &emitted.id,
            (None, Origin::Subscribed { task, .. }) => task,
            (None, Origin::Sent { .. }) => return false,
        };
        !about.as_str().is_empty() && !followed.as_str().is_empty() && about != followed
    }
}

/// A task from its first update; some agents never send it whole.
fn beginning(event: &StreamResponse) -> Option<Task> {
    let (id, context_id) = match event {
        StreamResponse::StatusUpdate(update) => (&update.task_id, &update.context_id),
        StreamResponse::ArtifactUpdate(update) => (&update.task_id, &update.context_id),
        StreamResponse::Task(_) | StreamResponse::Message(_) => return None,
    };
    let mut task = Task {
        id: id.clone(),
        context_id: context_id.clone(),
        status: TaskStatus { state: TaskState::Unspecified, message: None, timestamp: None },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
    };
    task.apply(event);
    Some(task)
}
