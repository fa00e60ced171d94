//! Waiting for the end of a burst: until it is quiet for a while, and not for ever.

use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::clock::Clock;
use switchboard_engine::fold::NumberedMessage;
use switchboard_engine::{Seq, Stopped, TaskHandle};

use super::joined;
use crate::tasks::channel_plan::ChannelPlan;

/// Waits until the burst is over. Messages stay unread. It waits by when they came, so that one which has waited for an agent
/// does not wait as long again.
pub(super) async fn quiet(
    task: &TaskHandle,
    clock: &dyn Clock,
    plan: &ChannelPlan,
    first: Option<&NumberedMessage>,
) -> Result<(), Stopped> {
    let came = |message: &NumberedMessage| (message.seq, message.received.at);
    let unread = task.unread();
    let Some((mut newest, mut newest_at)) = unread.last().into_iter().chain(first).map(came).max() else {
        return Ok(());
    };
    let first_at = first.or(unread.first()).map_or(newest_at, |message| message.received.at);
    let mut longest = clock.sleep(left(clock.now(), first_at, plan.max_debounce()));
    let over = async {
        loop {
            let quiet = clock.sleep(left(clock.now(), newest_at, plan.debounce()));
            tokio::select! {
                biased;
                more = task.unread_after(Seq(newest)) => more?,
                () = quiet => return Ok(()),
                () = &mut longest => return Ok(()),
            }
            if let Some(last) = task.unread().last() {
                (newest, newest_at) = came(last);
            }
        }
    };
    task.release_permit_while(over).await?
}

/// What is left of a time that began at some moment, whatever the clock has done since.
fn left(now: Timestamp, since: Timestamp, whole: Duration) -> Duration {
    let passed = u64::try_from(now.0.saturating_sub(since.0)).unwrap_or(0);
    whole.saturating_sub(Duration::from_millis(passed))
}

/// The oldest of what was said, as much as fits into so many bytes, and at least one message.
pub(super) fn fitting(
    first: Option<NumberedMessage>,
    unread: Vec<NumberedMessage>,
    most: usize,
) -> Vec<NumberedMessage> {
    let mut all: Vec<NumberedMessage> = first.into_iter().chain(unread).collect();
    all.sort_by_key(|message| message.seq);
    let mut bytes = 0_usize;
    let mut count = 0;
    for message in &all {
        bytes = bytes.saturating_add(joined::bytes(&message.received.message));
        if bytes > most {
            break;
        }
        count += 1;
    }
    all.truncate(count.max(1));
    all
}
