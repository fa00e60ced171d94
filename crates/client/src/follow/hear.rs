//! What is heard, put in its place: told once and in order, kept for a moment if it came early, compared with how the agent
//! has the task where its events have no numbers.

use switchboard_a2a::{SendResponse, StreamResponse, Task, TaskArtifactUpdate, TaskState, TaskStatus};
use switchboard_egress::SendError;

use super::position::{Position, Step};
use super::{Followed, Gap, Origin, Update, catch_up};
use crate::ClientError;
use crate::connection::Mark;

impl Followed {
    /// Takes in something that was heard.
    pub(super) async fn hear(&mut self, frame: StreamResponse, mark: Mark) -> Result<(), ClientError> {
        self.is_silent = false;
        let Mark { id, after, retry } = mark;
        self.come_back = retry.or(self.come_back);
        let position = id.as_deref().filter(|_| self.is_numbered).and_then(|id| Position::parse(id, after));
        match frame {
            StreamResponse::Message(_) => self.tell_reply(frame),
            StreamResponse::Task(now) => {
                let is_older = position.zip(self.position).is_some_and(|(position, last)| position <= last);
                if self.told.is_some() && is_older {
                    return Ok(());
                }
                (self.position, self.last_id) = (position.or(self.position), id.or(self.last_id.take()));
                match self.told.is_some() {
                    true => self.catch_up(now),
                    false => self.tell(StreamResponse::Task(now)),
                }
                self.tell_due();
            }
            update if self.is_numbered => return self.hear_numbered(position, update, id),
            // Saying the same of an artifact again is saying nothing.
            StreamResponse::ArtifactUpdate(update) if self.has_told(&update) => {}
            update => {
                // Nobody who numbers events needs to be asked whether they were all.
                if Self::ends(&update) && self.make_sure(&update).await? {
                    return Ok(());
                }
                self.last_id = id.or(self.last_id.take());
                self.tell(update);
            }
        }
        Ok(())
    }

    /// Takes in an update that has its place.
    fn hear_numbered(
        &mut self,
        position: Option<Position>,
        update: StreamResponse,
        id: Option<String>,
    ) -> Result<(), ClientError> {
        let Some(position) = position else {
            let origin = self.client.peer().url.clone();
            let why = "an event came without its number".to_owned();
            return self.lost_for(why, ClientError::Lost { origin, error: SendError::Broken });
        };
        match self.position.map(|last| position.step(last)) {
            Some(Step::Again) => {}
            Some(Step::Next) => {
                self.early.goes_on();
                (self.position, self.last_id) = (Some(position), id);
                self.tell(update);
                self.tell_due();
            }
            // The task itself comes before anything else about it.
            Some(Step::Jump) | None => {
                let is_further = !self.early.is_empty();
                self.early.keep(position, update, id);
                if is_further {
                    return self.doubt();
                }
            }
        }
        Ok(())
    }

    /// What was to fill a hole has not come.
    pub(super) fn doubt(&mut self) -> Result<(), ClientError> {
        match self.early.believed() {
            Some((position, event, id)) => {
                (self.position, self.last_id) = (Some(position), id);
                self.tell(event);
                self.tell_due();
            }
            None => {
                self.early.forget();
                self.connection = None;
            }
        }
        Ok(())
    }

    /// Tells what has waited for what was told just now.
    fn tell_due(&mut self) {
        while let Some((position, event, id)) = self.early.due(self.position) {
            (self.position, self.last_id) = (Some(position), id);
            self.tell(event);
        }
    }

    /// Whether an artifact was told exactly like this.
    fn has_told(&self, update: &TaskArtifactUpdate) -> bool {
        let told = self.told.iter().flat_map(|task| &task.artifacts);
        !update.append && told.into_iter().any(|artifact| *artifact == update.artifact)
    }

    /// Compares with how the agent has the task before its end is told; says whether that told the end already.
    async fn make_sure(&mut self, end: &StreamResponse) -> Result<bool, ClientError> {
        let (Some(task), Some(told)) = (self.task_id(), &self.told) else { return Ok(false) };
        let Ok(now) = self.client.get(&self.context, &task, None).await else { return Ok(false) };
        let mut expected = told.clone();
        expected.apply(end);
        // An agent that streams faster than it stores would take back what it has said.
        if now.status.state != expected.status.state {
            return Ok(false);
        }
        self.catch_up(now);
        Ok(true)
    }

    /// Tells what has happened between what was told and how the task is now.
    pub(super) fn catch_up(&mut self, now: Task) {
        let Some(told) = &self.told else { return self.tell(StreamResponse::Task(now)) };
        let difference = catch_up::difference(told, &now);
        if let Some(missing) = difference.missing {
            self.ready.push_back(Update::Gap(Gap { task: now.id.clone(), missing }));
        }
        if !difference.events.is_empty() {
            // What goes wrong from now on is counted anew.
            self.attempt = 0;
        }
        let asks = self.is_polling && now.status.state.is_interrupted();
        self.is_over |= now.status.state.is_terminal() || asks || difference.events.iter().any(Self::ends);
        self.ready.extend(difference.events.into_iter().map(|event| Update::Event(Box::new(event))));
        self.told = Some(now);
    }

    pub(super) fn tell(&mut self, event: StreamResponse) {
        match (&mut self.told, &event) {
            (told, StreamResponse::Task(task)) => *told = Some(task.clone()),
            (Some(task), event) => drop(task.apply(event)),
            (None, _) => self.told = beginning(&event),
        }
        let state = self.told.as_ref().map(|task| task.status.state);
        // A message may just have answered the question that a picture of the task still shows.
        let asks = matches!((&event, &self.origin), (StreamResponse::Task(_), Origin::Subscribed(_)))
            && state == Some(TaskState::InputRequired);
        self.is_over |= state.is_some_and(TaskState::is_terminal) || asks || Self::ends(&event);
        self.ready.push_back(Update::Event(Box::new(event)));
        self.attempt = 0;
    }

    pub(super) fn tell_reply(&mut self, event: StreamResponse) {
        if let StreamResponse::Message(message) = &event {
            self.reply = Some(SendResponse::Message(message.clone()));
        }
        self.ready.push_back(Update::Event(Box::new(event)));
        self.is_over = true;
    }
}

/// A task of which only an update has come; some agents never send it whole.
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
