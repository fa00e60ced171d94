//! What this process does with a task's turn, as a state machine. The task's row says what the log knows of the turn
//! (queued, running, parked); this says who works on it here.
//!
//! | from | to | transition | made by |
//! |---|---|---|---|
//! | Idle, Requeued | Claiming | `begin_claim` | an answer that has a permit; the queue |
//! | Claiming | Idle, Requeued | `undo_claim` | the same writer: the claim was refused, or is decided again |
//! | Idle, Requeued, Claiming | Driven | `start`, `claimed` | a new task's first message; recovery; a committed claim |
//! | Driven | Driven, permit granted | `claimed` | a committed claim whose agent still waits in memory |
//! | Driven | Driven, next run | `begin_run` | the driver, before each run of the agent |
//! | Driven | Idle, or Claiming if a claim is under way | `leave` | the driver; a takeover; a log that was rewound |
//! | Idle | Requeued | `requeue` | recovery that found no permit |
//! | Requeued | Idle | `follow_row` | a row that no longer waits as this process left it, read from the log |
//! | any | Lost | `give_up` | a failed creation; a task that is gone; the end of a shutdown |
//!
//! Nothing leaves Lost. What is not in the table is refused with [`IllegalTransition`] and changes nothing.

use super::driven_turn::{DrivenTurn, PermitState, RunProgress};
use crate::admission::Permit;
use crate::ids::Fence;
use crate::store::{Holder, Phase, RowState, StoreError};
use crate::turn::TurnInput;

/// A task's turn in this process.
#[derive(Default)]
pub(crate) struct TurnState {
    stage: Stage,
    /// Rises with every run, and when one is left: a handle of another run is worthless.
    run: u64,
}

#[derive(Default)]
enum Stage {
    /// No turn is here: none is due, it waits in the queue without anything to remember, or another node has it.
    #[default]
    Idle,
    /// A recovered turn waits in the queue with what it begins with.
    Requeued(RequeuedInput),
    /// A turn is being claimed in the log and begins right after.
    Claiming(Option<RequeuedInput>),
    /// A driver holds the agent's future, running or parked.
    Driven(DrivenTurn),
    /// The task never came to be, or its turn cannot go on here.
    Lost(StoreError),
}

/// What a recovered turn begins with, which is good only for the row that it waits under: once another node has claimed
/// the turn, the message may be an old one.
struct RequeuedInput {
    input: Box<TurnInput>,
    /// The fence of that row.
    fence: Fence,
}

impl RequeuedInput {
    /// Whether the turn still waits under its row, or has been claimed from there by this node.
    fn is_good_for(&self, row: &RowState, holder: Holder) -> bool {
        let waits = row.phase == Phase::Requeued && row.fence == self.fence;
        let is_claimed_here = holder == Holder::This && row.fence == self.fence.next();
        waits || is_claimed_here
    }
}

/// How a claimed turn goes on.
pub(crate) enum Claimed {
    /// In the agent that still waits in memory.
    Resumes,
    /// In a new run: with this permit, and the input it was recovered with if it was.
    Begins(Permit, Option<Box<TurnInput>>),
}

/// A transition that the table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a turn that is {from} takes no {transition}")]
pub(crate) struct IllegalTransition {
    from: &'static str,
    transition: &'static str,
}

impl TurnState {
    fn illegal<T>(&self, transition: &'static str) -> Result<T, IllegalTransition> {
        Err(IllegalTransition { from: self.name(), transition })
    }

    fn name(&self) -> &'static str {
        match self.stage {
            Stage::Idle => "idle",
            Stage::Requeued(_) => "requeued",
            Stage::Claiming(_) => "being claimed",
            Stage::Driven(_) => "driven",
            Stage::Lost(_) => "lost",
        }
    }

    /// Whether a handle that was given to this run may still write.
    pub(crate) fn is_run(&self, run: u64) -> bool {
        self.run == run && self.lost().is_none()
    }

    /// Why the turn cannot go on here, if it cannot.
    pub(crate) fn lost(&self) -> Option<&StoreError> {
        match &self.stage {
            Stage::Lost(error) => Some(error),
            _ => None,
        }
    }

    /// Why the task gets no further at present: its turn is lost, or its output cannot be stored.
    pub(crate) fn stuck(&self) -> Option<&StoreError> {
        self.lost().or_else(|| self.driven()?.unstored.as_ref())
    }

    /// Whether nothing of the turn is in this process.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// Whether a recovered turn waits in the queue of this process.
    pub(crate) fn is_requeued(&self) -> bool {
        matches!(self.stage, Stage::Requeued(_))
    }

    /// Whether a driver of this process has the turn, or is about to.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self.stage, Stage::Claiming(_) | Stage::Driven(_))
    }

    pub(crate) fn driven(&self) -> Option<&DrivenTurn> {
        match &self.stage {
            Stage::Driven(driven) => Some(driven),
            _ => None,
        }
    }

    pub(crate) fn driven_mut(&mut self) -> Option<&mut DrivenTurn> {
        match &mut self.stage {
            Stage::Driven(driven) => Some(driven),
            _ => None,
        }
    }

    /// The turn, for the run of this number; nothing if another run has taken its place.
    pub(crate) fn driven_by(&mut self, run: u64) -> Option<&mut DrivenTurn> {
        let is_current = self.run == run;
        self.driven_mut().filter(|_| is_current)
    }

    /// Whether a driver has the turn and may write while the task's row has this fence.
    pub(crate) fn owns(&self, fence: Fence) -> bool {
        self.driven().is_some_and(|driven| driven.fence == fence)
    }

    /// What the present run has got to; nothing was said by a turn that is not here.
    pub(crate) fn progress(&self) -> RunProgress {
        self.driven().map_or(RunProgress::Working, |driven| driven.progress)
    }

    /// The present run has got so far.
    pub(crate) fn set_progress(&mut self, progress: RunProgress) {
        if let Some(driven) = self.driven_mut() {
            driven.progress = progress;
        }
    }

    /// Whether the turn has begun, and waits in the queue for a permit to go on.
    pub(crate) fn waits_for_permit(&self) -> bool {
        self.driven().is_some_and(|driven| matches!(driven.permit, PermitState::Requeued))
    }

    /// A turn that has a permit is about to be claimed in the log.
    pub(crate) fn begin_claim(&mut self) -> Result<(), IllegalTransition> {
        self.stage = match std::mem::take(&mut self.stage) {
            Stage::Idle => Stage::Claiming(None),
            Stage::Requeued(requeued) => Stage::Claiming(Some(requeued)),
            Stage::Driven(driven) => Stage::Driven(DrivenTurn { is_being_claimed: true, ..driven }),
            other => {
                self.stage = other;
                return self.illegal("claim");
            }
        };
        Ok(())
    }

    /// The claim was not made. Only for the writer that began it.
    pub(crate) fn undo_claim(&mut self) {
        self.stage = match std::mem::take(&mut self.stage) {
            Stage::Claiming(None) => Stage::Idle,
            Stage::Claiming(Some(requeued)) => Stage::Requeued(requeued),
            Stage::Driven(driven) => Stage::Driven(DrivenTurn { is_being_claimed: false, ..driven }),
            // Lost meanwhile, or reloaded.
            other => other,
        };
    }

    /// The turn was claimed under this fence and goes on with this permit.
    pub(crate) fn claimed(&mut self, fence: Fence, permit: Permit) -> Result<Claimed, IllegalTransition> {
        if let Some(driven) = self.driven_mut() {
            driven.fence = fence;
            driven.is_being_claimed = false;
            driven.permit = PermitState::Granted(permit);
            return Ok(Claimed::Resumes);
        }
        let input = self.start(fence)?;
        Ok(Claimed::Begins(permit, input))
    }

    /// A driver is about to take the turn and write under this fence. Gives what a recovered turn begins with.
    pub(crate) fn start(&mut self, fence: Fence) -> Result<Option<Box<TurnInput>>, IllegalTransition> {
        let requeued = match std::mem::take(&mut self.stage) {
            Stage::Idle => None,
            Stage::Requeued(requeued) => Some(requeued),
            Stage::Claiming(requeued) => requeued,
            other => {
                self.stage = other;
                return self.illegal("start");
            }
        };
        self.stage = Stage::Driven(DrivenTurn::new(fence));
        Ok(requeued.map(|requeued| requeued.input))
    }

    /// The driver calls the agent: handles of earlier runs are worthless from now on. Gives the run's number.
    pub(crate) fn begin_run(&mut self) -> Result<u64, IllegalTransition> {
        let Some(driven) = self.driven_mut() else { return self.illegal("run") };
        driven.begin_run();
        self.run += 1;
        Ok(self.run)
    }

    /// No driver holds the turn any more. Without effect on one that has none.
    pub(crate) fn leave(&mut self) {
        let Some(driven) = self.driven() else { return };
        self.stage = if driven.is_being_claimed { Stage::Claiming(None) } else { Stage::Idle };
        self.run += 1;
    }

    /// A recovered turn waits in the queue, under a row of this fence.
    pub(crate) fn requeue(&mut self, input: TurnInput, fence: Fence) -> Result<(), IllegalTransition> {
        if !self.is_idle() {
            return self.illegal("place in the queue");
        }
        self.stage = Stage::Requeued(RequeuedInput { input: Box::new(input), fence });
        Ok(())
    }

    /// Drops what a recovered turn would begin with if its row, as it is committed now, no longer waits for that.
    pub(crate) fn follow_row(&mut self, row: &RowState, holder: Holder) {
        match &mut self.stage {
            Stage::Requeued(requeued) if !requeued.is_good_for(row, holder) => self.stage = Stage::Idle,
            Stage::Claiming(requeued) => *requeued = requeued.take().filter(|input| input.is_good_for(row, holder)),
            _ => {}
        }
    }

    /// The task never came to be, or its turn cannot go on here.
    pub(crate) fn give_up(&mut self, error: StoreError) {
        self.stage = Stage::Lost(error);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use switchboard_a2a::{Message, Role, Timestamp};
    use switchboard_admission::Counter;

    use super::*;
    use crate::agent::Cause;
    use crate::event::Received;
    use crate::fold::NumberedMessage;

    /// The state as the table has it, and what must not get lost in it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Model {
        Idle,
        Requeued,
        Claiming { has_input: bool },
        Driven { is_being_claimed: bool },
        Lost,
    }

    const TRANSITIONS: u64 = 11;

    fn input() -> TurnInput {
        let message = Message::text(Role::User, "recovered");
        let received = Received::new(message, Timestamp(0));
        TurnInput::new(NumberedMessage { seq: 1, received: Arc::new(received) }, Cause::Recovered, None)
    }

    fn make(turn: &mut TurnState, model: Model, transition: u64, permits: &Counter) -> Model {
        use Model::*;
        let fence = Fence(7);
        let before = (turn.name(), turn.run);
        match (transition, model) {
            (0, Idle | Requeued) => {
                turn.begin_claim().unwrap();
                Claiming { has_input: model == Requeued }
            }
            (0, Driven { .. }) => {
                turn.begin_claim().unwrap();
                Driven { is_being_claimed: true }
            }
            (1, _) => {
                turn.undo_claim();
                match model {
                    Claiming { has_input: true } => Requeued,
                    Claiming { has_input: false } => Idle,
                    Driven { .. } => Driven { is_being_claimed: false },
                    other => other,
                }
            }
            (2, Idle | Requeued | Claiming { .. }) => {
                let has_input = matches!(model, Requeued | Claiming { has_input: true });
                assert_eq!(turn.start(fence).unwrap().is_some(), has_input);
                assert!(turn.owns(fence) && !turn.owns(fence.next()));
                Driven { is_being_claimed: false }
            }
            (3, Idle | Requeued | Claiming { .. }) => {
                let has_input = matches!(model, Requeued | Claiming { has_input: true });
                let claimed = turn.claimed(fence, Permit::counted_by(permits)).unwrap();
                assert!(matches!(claimed, Claimed::Begins(_, input) if input.is_some() == has_input));
                Driven { is_being_claimed: false }
            }
            (3, Driven { .. }) => {
                let claimed = turn.claimed(fence.next(), Permit::counted_by(permits)).unwrap();
                assert!(matches!(claimed, Claimed::Resumes) && turn.owns(fence.next()));
                assert_eq!(permits.held(), 1, "the driver gets the permit");
                Driven { is_being_claimed: false }
            }
            (4, Driven { .. }) => {
                assert_eq!(turn.begin_run().unwrap(), before.1 + 1);
                assert!(turn.is_run(turn.run) && !turn.is_run(before.1));
                assert_eq!(turn.progress(), RunProgress::Working);
                model
            }
            (5, Driven { is_being_claimed }) => {
                turn.leave();
                assert!(!turn.is_run(before.1), "a handle outlives its run");
                assert_eq!(permits.held(), 0, "a permit is kept by a turn that was left");
                if is_being_claimed { Claiming { has_input: false } } else { Idle }
            }
            (6, Idle) => {
                turn.requeue(input(), fence).unwrap();
                Requeued
            }
            (7, _) => {
                // Claimed by another node, or left by it since.
                let is_left = before.1.is_multiple_of(2);
                let (phase, holder) =
                    if is_left { (Phase::Parked, Holder::Unheld) } else { (Phase::Running, Holder::Other) };
                turn.follow_row(&RowState { phase, fence: fence.next(), ..RowState::default() }, holder);
                match model {
                    Requeued => Idle,
                    Claiming { .. } => Claiming { has_input: false },
                    other => other,
                }
            }
            (9, _) => {
                // Still as it was left, or claimed here.
                let waits = RowState { phase: Phase::Requeued, fence, ..RowState::default() };
                turn.follow_row(&waits, Holder::Unheld);
                if let Claiming { .. } = model {
                    let claimed = RowState { phase: Phase::Running, fence: fence.next(), ..RowState::default() };
                    turn.follow_row(&claimed, Holder::This);
                }
                model
            }
            (8, _) => {
                if let Some(driven) = turn.driven_mut() {
                    change_permit(driven, permits);
                }
                model
            }
            (10, _) => {
                turn.give_up(StoreError::Closed);
                assert_eq!(permits.held(), 0);
                Lost
            }
            (transition, _) => {
                let refused = match transition {
                    0 => turn.begin_claim().err(),
                    2 => turn.start(fence).err(),
                    3 => turn.claimed(fence, Permit::counted_by(permits)).err(),
                    4 => turn.begin_run().err(),
                    6 => turn.requeue(input(), fence).err(),
                    _ => {
                        turn.leave();
                        Some(IllegalTransition { from: turn.name(), transition: "leave" })
                    }
                };
                assert!(refused.is_some(), "{model:?} takes transition {transition}");
                assert_eq!(before, (turn.name(), turn.run), "what is refused changes nothing");
                model
            }
        }
    }

    /// One permit goes its whole way: released, queued for, granted, taken.
    fn change_permit(driven: &mut DrivenTurn, permits: &Counter) {
        drop(driven.release_permit());
        driven.confirm_release();
        assert!(driven.is_without_permit() && driven.needs_permit());
        driven.wait_for_permit();
        assert!(!driven.needs_permit(), "it waits in the queue once");
        assert!(driven.grant(Permit::counted_by(permits)).is_ok());
        assert!(driven.grant(Permit::counted_by(permits)).is_err(), "one permit is enough");
        assert!(driven.take_permit().is_some() && driven.take_permit().is_none());
        assert_eq!(permits.held(), 0);
    }

    #[test]
    fn random_transitions_go_as_the_table_says_and_lose_no_permit_and_no_input() {
        for seed in 1..=500u64 {
            let permits = Counter::default();
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (mut turn, mut model) = (TurnState::default(), Model::Idle);
            for step in 0..60 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Nothing leaves Lost, so it comes last.
                let transition =
                    if step < 50 { (random >> 33) % (TRANSITIONS - 1) } else { (random >> 33) % TRANSITIONS };
                model = make(&mut turn, model, transition, &permits);
                let expected = match model {
                    Model::Idle => "idle",
                    Model::Requeued => "requeued",
                    Model::Claiming { .. } => "being claimed",
                    Model::Driven { .. } => "driven",
                    Model::Lost => "lost",
                };
                assert_eq!(turn.name(), expected, "seed {seed}, step {step}, transition {transition}");
            }
        }
    }
}
