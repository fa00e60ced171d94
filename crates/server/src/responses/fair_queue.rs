//! Waiters in line, one line per caller, served in turn: however many one caller has waiting, the next turn of another
//! caller is at most one round away.

use std::collections::VecDeque;

use switchboard_engine::CallerId;

/// Waiters by caller.
pub(super) struct FairQueue<T> {
    /// Callers with waiters; the first has its turn. They are few: one who waits for nothing is not here.
    lines: VecDeque<Line<T>>,
    next_ticket: u64,
}

struct Line<T> {
    caller: CallerId,
    waiters: VecDeque<(u64, T)>,
}

/// What becomes of the waiter whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is served.
    Serve,
    /// Its caller has to wait, and the next caller has its turn.
    Skip,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { lines: VecDeque::new(), next_ticket: 0 }
    }
}

impl<T> FairQueue<T> {
    /// Adds a waiter behind those of its caller. The ticket takes it out again.
    pub(super) fn push(&mut self, caller: &CallerId, waiter: T) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        match self.lines.iter_mut().find(|line| line.caller == *caller) {
            Some(line) => line.waiters.push_back((ticket, waiter)),
            None => {
                self.lines.push_back(Line { caller: caller.clone(), waiters: VecDeque::from([(ticket, waiter)]) });
            }
        }
        ticket
    }

    /// Takes a waiter out that does not wait any more; none if it was served.
    pub(super) fn remove(&mut self, caller: &CallerId, ticket: u64) -> Option<T> {
        let index = self.lines.iter().position(|line| line.caller == *caller)?;
        let waiters = &mut self.lines[index].waiters;
        let place = waiters.iter().position(|(other, _)| *other == ticket)?;
        let (_, waiter) = waiters.remove(place)?;
        if waiters.is_empty() {
            self.lines.remove(index);
        }
        Some(waiter)
    }

    /// The next one to be served, if one can be. Its caller goes to the end of the round.
    pub(super) fn serve(&mut self, mut judge: impl FnMut(&T) -> Turn) -> Option<T> {
        for index in 0..self.lines.len() {
            let Some((_, first)) = self.lines[index].waiters.front() else { continue };
            match judge(first) {
                Turn::Serve => {
                    let mut line = self.lines.remove(index)?;
                    let served = line.waiters.pop_front();
                    if !line.waiters.is_empty() {
                        self.lines.push_back(line);
                    }
                    return served.map(|(_, waiter)| waiter);
                }
                Turn::Skip => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_served_in_turn_and_leave_when_they_want() {
        let (ann, bob, eve) = (CallerId::from("ann"), CallerId::from("bob"), CallerId::from("eve"));
        let mut queue = FairQueue::default();
        for number in 1..=4 {
            queue.push(&ann, number);
        }
        let gone = queue.push(&bob, 10);
        queue.push(&bob, 11);
        queue.push(&eve, 20);
        assert_eq!(queue.remove(&bob, gone), Some(10));
        assert_eq!(queue.remove(&bob, gone), None, "it is gone already");

        assert_eq!(queue.serve(|_| Turn::Skip), None);
        assert_eq!(queue.serve(|_| Turn::Serve), Some(1));
        let skips_bob = |waiter: &i32| if *waiter == 11 { Turn::Skip } else { Turn::Serve };
        assert_eq!(queue.serve(skips_bob), Some(20));
        let order: Vec<_> = std::iter::from_fn(|| queue.serve(|_| Turn::Serve)).collect();
        assert_eq!(order, [11, 2, 3, 4]);
        assert!(queue.lines.is_empty());
    }
}
