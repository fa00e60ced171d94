//! A turn's timers: each may be set, none disturbs another.

use std::future::poll_fn;
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// What a timer stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alarm {
    /// The task's deadline or idle limit may have passed.
    Limits,
    /// The grace period of a canceled agent is over.
    Grace,
    /// A parked agent has been kept long enough.
    Parked,
    /// A failing store is offered the output again.
    Retry,
}

const ALL: [Alarm; 4] = [Alarm::Limits, Alarm::Grace, Alarm::Parked, Alarm::Retry];

/// The timers of one turn.
#[derive(Default)]
pub(super) struct Timers {
    slots: [Option<BoxFuture<'static, ()>>; ALL.len()],
}

impl Timers {
    pub(super) fn set(&mut self, alarm: Alarm, timer: BoxFuture<'static, ()>) {
        self.slots[alarm as usize] = Some(timer);
    }

    pub(super) fn clear(&mut self, alarm: Alarm) {
        self.slots[alarm as usize] = None;
    }

    pub(super) fn is_set(&self, alarm: Alarm) -> bool {
        self.slots[alarm as usize].is_some()
    }

    /// Waits for the next one; it is no longer set then.
    pub(super) async fn next(&mut self) -> Alarm {
        poll_fn(|context| {
            for alarm in ALL {
                let slot = &mut self.slots[alarm as usize];
                if slot.as_mut().is_some_and(|timer| timer.poll_unpin(context).is_ready()) {
                    *slot = None;
                    return Poll::Ready(alarm);
                }
            }
            Poll::Pending
        })
        .await
    }
}
