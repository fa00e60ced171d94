//! Watching a task: read its log from a sequence number and wait for more.
//!
//! Streams, subscriptions, resumptions and blocked senders all do this. A wake-up carries no data; a slow reader that
//! fell behind the tail in memory reads the store, so it causes no backpressure on the turn.

use std::sync::Arc;

use switchboard_a2a::{Message, Task, TaskId, TaskState};

use crate::caller::Caller;
use crate::delegation::WaitingCall;
use crate::directory::{Address, Hosted};
use crate::engine::{Engine, EngineState, shutting_down, state_label};
use crate::error::Error;
use crate::event::{Event, EventKind, LoggedEvent, kind_of};
use crate::fold::Fold;
use crate::ids::{Cursor, Seq};
use crate::live_task::{Core, LiveTask};
use crate::read::TaskReading;
use crate::route::Routed;
use crate::store::EventRow;
use crate::submit::{InitialTask, Submitted};

/// How much a reader that has fallen behind takes from the store at a time.
const READ_BYTES: usize = 256 << 10;

/// When a stream ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// At the terminal event.
    Terminal,
    /// Also when the agent asks for input.
    InputRequired,
    /// Also at AUTH_REQUIRED.
    Interrupted,
}

impl StreamEnd {
    /// Whether the stream ends with this event.
    pub fn ends_at(self, kind: EventKind) -> bool {
        match kind {
            EventKind::Status(state) if state.is_terminal() => true,
            EventKind::Status(TaskState::InputRequired) => self != Self::Terminal,
            EventKind::Status(TaskState::AuthRequired) => self == Self::Interrupted,
            _ => false,
        }
    }
}

/// What a blocked sender gets.
#[derive(Clone, Debug)]
pub enum SendResult {
    /// The task as it is.
    Task(TaskReading),
    /// A direct reply.
    Message(Message),
}

impl Submitted {
    /// The blocking send: waits for a terminal or interrupted state after this message. If the task waits for an operator,
    /// whom no message answers, output cannot be stored at present, or the server stops, the blocked sender gets the task as
    /// it is: the message is stored, so it is no error.
    pub async fn answer(&self) -> SendResult {
        let seq = self.seq;
        let stopped = self.live.wait_for(|core| {
            let stopped = core.fold.kernel.last_stop > seq.0 || core.fold.is_for_operator();
            let over = stopped || core.is_done() || core.turn.stuck().is_some();
            over.then(|| core.fold.kernel.reply.clone())
        });
        let limit = async {
            match self.engine.settings.max_blocking {
                Some(limit) => self.engine.clock.sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let reply = tokio::select! {
            // A result in time counts even if the shutdown comes in the same moment.
            biased;
            reply = stopped => reply,
            () = limit => None,
            () = self.engine.drained.cancelled() => None,
        };
        self.answer_with(reply)
    }

    /// Waits for the end of the task, over every question. An error if the server stops before that.
    pub async fn end(&self) -> Result<SendResult, Error> {
        let ended = self.live.wait_for(|core| match core.turn.lost() {
            _ if core.is_done() => Some(Ok(core.fold.kernel.reply.clone())),
            Some(error) => Some(Err(Error::from(error.clone()))),
            None => None,
        });
        tokio::select! {
            biased;
            reply = ended => Ok(self.answer_with(reply?)),
            () = self.engine.drained.cancelled() => Err(shutting_down()),
        }
    }

    fn answer_with(&self, reply: Option<Message>) -> SendResult {
        match reply {
            Some(message) => SendResult::Message(message),
            None => SendResult::Task(self.engine.reading(&self.live)),
        }
    }

    /// The task at once, without waiting for its end. An agent that has not yet said whether it answers with a task
    /// or a message is waited for.
    pub async fn now(&self) -> SendResult {
        let reply = self.reply_or_task(|core| core.turn.stuck().is_some()).await;
        self.answer_with(reply)
    }

    async fn reply_or_task(&self, gets_no_further: impl Fn(&Core) -> bool) -> Option<Message> {
        let decided = self.live.wait_for(|core| {
            let decided = !core.row.hidden || core.is_done() || gets_no_further(core);
            decided.then(|| core.fold.kernel.reply.clone())
        });
        tokio::select! {
            biased;
            reply = decided => reply,
            () = self.engine.drained.cancelled() => None,
        }
    }

    /// The stream of this message: a direct reply, or the task as of the message and everything after it.
    pub async fn stream(self, until: StreamEnd, after: Option<Cursor>) -> SendStream {
        // A stream has keep-alives, so its reader can wait until the reply is stored.
        if let Some(message) = self.reply_or_task(|core| core.turn.lost().is_some()).await {
            return SendStream::Message(message);
        }
        let mut first = match self.first {
            InitialTask::Existing(known) => *known,
            InitialTask::NotRequested => {
                let core = self.live.core.lock();
                (core.cursor(), core.task())
            }
            InitialTask::New(epoch, received) => {
                let mut fold = Fold::new(&self.live.task);
                fold.apply(self.seq, &Event::Received(received));
                (Cursor { epoch, seq: self.seq }, fold.task)
            }
        };
        let mut stream = LogStream::new(self.engine, self.live, self.seq, until);
        stream.waiting = self.waiting;
        let resumed = match after {
            Some(cursor) if cursor.seq >= self.seq => stream.knows(cursor).await,
            _ => false,
        };
        let first = if let (true, Some(cursor)) = (resumed, after) {
            stream.after = cursor.seq;
            None
        } else {
            stream.engine.add_queue_position(&stream.live, &mut first.1);
            Some(first)
        };
        SendStream::Task(Subscription { first, stream })
    }
}

/// What a message stream carries.
pub enum SendStream {
    /// One direct reply.
    Message(Message),
    /// A task.
    Task(Subscription),
}

/// A subscription to a task.
pub struct Subscription {
    /// The first frame; absent when the reader goes on after a cursor.
    pub first: Option<(Cursor, Task)>,
    /// What follows.
    pub stream: LogStream,
}

impl Engine {
    /// The blocking send: the message, and the answer to it. A turn that its sender has begun is not handed to a task of its
    /// own, which would only wake this one at the end.
    pub async fn send_and_wait(&self, mut routed: Routed) -> Result<(Submitted, SendResult), Error> {
        // Sent by a program of a turn, it is spawned, and its turn with it.
        routed.awaits = routed.called_by.is_none();
        let mut submitted = self.send(routed).await?;
        let answer = match submitted.turn.get_mut().take() {
            Some(mut turn) => turn.run_beside(submitted.answer()).await,
            None => submitted.answer().await,
        };
        Ok((submitted, answer))
    }

    /// Watches a task from now on, or from right after a cursor. A cursor the log does not know is answered with the
    /// task as it is.
    pub async fn subscribe(
        &self,
        address: &Address,
        caller: &Caller,
        id: &TaskId,
        after: Option<Cursor>,
        until: impl FnOnce(Option<&Arc<Hosted>>) -> StreamEnd,
    ) -> Result<Subscription, Error> {
        let live = self.inner.open(address, caller, id).await?;
        let until = until(live.hosted.as_ref());
        let mut stream = LogStream::new(self.inner.clone(), live.clone(), Seq(0), until);
        stream.waiting = caller.scopes.agents.task().and_then(|scope| WaitingCall::begin(&scope.handle));
        if let Some(cursor) = after
            && stream.knows(cursor).await
        {
            stream.after = cursor.seq;
            return Ok(Subscription { first: None, stream });
        }
        let core = live.core.lock();
        if core.is_done() && after.is_none() {
            let state = state_label(core.row.state);
            return Err(Error::Unsupported(format!("task {id} is {state}: get it instead of subscribing")));
        }
        stream.after = core.last_seq;
        let (cursor, mut task) = (core.cursor(), core.task());
        drop(core);
        self.inner.add_queue_position(&live, &mut task);
        Ok(Subscription { first: Some((cursor, task)), stream })
    }
}

/// Events of one task in order, each once.
pub struct LogStream {
    engine: Arc<EngineState>,
    live: Arc<LiveTask>,
    after: Seq,
    until: StreamEnd,
    over: bool,
    /// The run whose program reads it, and so waits.
    waiting: Option<WaitingCall>,
}

impl LogStream {
    pub(crate) fn new(engine: Arc<EngineState>, live: Arc<LiveTask>, after: Seq, until: StreamEnd) -> Self {
        Self { engine, live, after, until, over: false, waiting: None }
    }

    /// The number that the next events come after.
    pub fn after(&self) -> Seq {
        self.after
    }

    /// The agent that works on the task, if it is still there.
    pub fn hosted(&self) -> Option<&Arc<Hosted>> {
        self.live.hosted.as_ref()
    }

    /// The most that reading on may take from the store now; nothing if what follows is in memory, or is yet to come.
    pub fn unread_bytes(&self) -> usize {
        let core = self.live.core.lock();
        if core.has_tail_after(self.after) {
            return 0;
        }
        usize::try_from(core.bytes)
            .unwrap_or(usize::MAX)
            .min(self.engine.settings.event_bytes.saturating_add(READ_BYTES))
    }

    /// About how many bytes the whole task has as JSON.
    pub fn task_bytes(&self) -> u64 {
        self.live.core.lock().bytes
    }

    /// The events that are sent on the wire and have come since the last call; none when the stream is over.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<LoggedEvent>>>, Error> {
        loop {
            if self.over {
                return Ok(None);
            }
            let events = self.more().await?;
            let Some(events) = events else {
                self.over = true;
                self.waiting = None;
                return Ok(None);
            };
            let mut sent = Vec::with_capacity(events.len());
            for event in events {
                self.after = event.seq;
                let ends = self.until.ends_at(event.kind);
                if event.kind.is_sent() {
                    sent.push(event);
                }
                if ends {
                    self.over = true;
                    break;
                }
            }
            if !sent.is_empty() {
                return Ok(Some(sent));
            }
        }
    }

    /// Whether the stream ended because the task did, rather than because the server stops.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Events after the last one seen, of any kind; waits for some. None if there will be no more.
    async fn more(&mut self) -> Result<Option<Vec<Arc<LoggedEvent>>>, Error> {
        let after = self.after;
        let at_hand = {
            let news = self.live.wait_for(|core| {
                if core.last_seq > after {
                    return Some(Some(core.tail_after(after)));
                }
                (core.is_done() || core.turn.lost().is_some()).then_some(None)
            });
            tokio::select! {
                biased;
                news = news => news,
                () = self.engine.drained.cancelled() => None,
            }
        };
        match at_hand {
            None => Ok(None),
            Some(Some(events)) => Ok(Some(events)),
            Some(None) => {
                let Some(key) = self.live.core.lock().key else { return Ok(None) };
                let events = events_after(&self.engine.store.read(key, after, READ_BYTES).await?, after);
                Ok((!events.is_empty()).then_some(events))
            }
        }
    }

    /// Whether the log has this event as the cursor's reader saw it.
    async fn knows(&mut self, cursor: Cursor) -> bool {
        let key = {
            let core = self.live.core.lock();
            core.key.filter(|_| cursor.seq <= core.last_seq)
        };
        let (Some(key), Some(before)) = (key, cursor.seq.0.checked_sub(1)) else { return false };
        // One row is read however small the limit is, and the first one holds the event after `before`.
        let rows = self.engine.store.read(key, Seq(before), 1).await.unwrap_or_default();
        rows.first().is_some_and(|row| row.first_seq <= cursor.seq && row.epoch == cursor.epoch)
    }
}

/// The events of rows after a number, as readers get them.
pub(crate) fn events_after(rows: &[EventRow], after: Seq) -> Vec<Arc<LoggedEvent>> {
    let mut events = Vec::new();
    for row in rows {
        // An event that was seen before is not looked into: telling its kind costs more than all else.
        let unseen = row.lines().skip_while(|(seq, _)| *seq <= after);
        events.extend(
            unseen.map(|(seq, line)| LoggedEvent::new(seq, row.epoch, kind_of(line), row.events.slice_ref(line))),
        );
    }
    events
}
