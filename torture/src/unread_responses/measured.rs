//! What was measured of the server without the attack and under it, and whether that may be.

use std::fmt;

use crate::compare::Problems;
use crate::delays::Delays;
use crate::unread_responses::{BUDGET_MIB, PER_CALLER_MIB, UNREAD};

/// The whole process may use so many budgets: beside the responses in flight there are the tasks they are rendered from, and
/// what the allocator keeps. If every response were kept, it would be about nineteen.
const MOST_BUDGETS: u64 = 2;
/// For the small responses of the keys that read theirs.
const OTHERS_MIB: u64 = 1;
/// 99 of 100 requests may take so many times as long as on the idle server, or half as long as one large page if that is more:
/// where requests take next to nothing, a single turn of the scheduler is a large multiple of it.
const MOST_RATIO: u64 = 10;

/// The server without the attack and under it.
pub struct Measured {
    pub(super) idle: Phase,
    pub(super) attacked: Phase,
    /// How long one page takes that is read, on the idle server.
    pub(super) page_us: u64,
    /// The memory of the server before it had any large task, in KiB.
    pub(super) fresh_kib: u64,
}

/// The other key's requests, and what the server used meanwhile.
pub(super) struct Phase {
    pub(super) get_task: Delays,
    pub(super) send_message: Delays,
    pub(super) peak: Peak,
}

/// The most that was seen.
#[derive(Clone, Copy, Default)]
pub(super) struct Peak {
    pub(super) response_bytes: u64,
    pub(super) waiting_responses: u64,
    pub(super) memory_kib: u64,
}

impl Peak {
    pub(super) fn or_more(self, other: Self) -> Self {
        Self {
            response_bytes: self.response_bytes.max(other.response_bytes),
            waiting_responses: self.waiting_responses.max(other.waiting_responses),
            memory_kib: self.memory_kib.max(other.memory_kib),
        }
    }
}

impl Measured {
    /// The bounds on what the server keeps that do not hold, and whether anything was tried.
    pub(super) fn kept_too_much(&self) -> Problems {
        let mut problems = Problems::new();
        let peak = self.attacked.peak;
        if peak.response_bytes == 0 || peak.waiting_responses < UNREAD as u64 / 2 {
            problems.push(format!("only {} responses waited, so nothing was tried", peak.waiting_responses));
        }
        // There is one attacker, so what is in flight is one caller's.
        if peak.response_bytes > (PER_CALLER_MIB + OTHERS_MIB) << 20 {
            let bytes = peak.response_bytes;
            problems.push(format!(
                "{bytes} bytes of responses are in flight, and one caller may have {PER_CALLER_MIB} MiB"
            ));
        }
        if peak.memory_kib > (MOST_BUDGETS * BUDGET_MIB) << 10 {
            problems.push(format!("memory is {} KiB, more than {MOST_BUDGETS} budgets", peak.memory_kib));
        }
        problems
    }

    /// The requests that were delayed.
    pub(super) fn delayed(&self) -> Problems {
        let mut problems = Problems::new();
        for (name, idle, attacked) in self.operations() {
            let most = (MOST_RATIO * idle.at(99)).max(self.page_us / 2);
            if attacked.at(99) > most {
                problems.push(format!("{name} takes {} µs at the 99th percentile, more than {most}", attacked.at(99)));
            }
        }
        problems
    }

    fn operations(&self) -> [(&'static str, &Delays, &Delays); 2] {
        let (idle, attacked) = (&self.idle, &self.attacked);
        [("GetTask", &idle.get_task, &attacked.get_task), ("SendMessage", &idle.send_message, &attacked.send_message)]
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (idle, peak) = (self.idle.peak, self.attacked.peak);
        let in_flight = peak.response_bytes as f64 / f64::from(1 << 20);
        let waited = peak.waiting_responses;
        writeln!(
            formatter,
            "{UNREAD} responses not read: at most {in_flight:.1} of {PER_CALLER_MIB} MiB in flight, {waited} waited"
        )?;
        let grown = peak.memory_kib.saturating_sub(self.fresh_kib) as f64 / 1024.0;
        writeln!(
            formatter,
            "memory: {} MiB fresh, {} MiB idle, {} MiB attacked; {grown:.1} MiB more than fresh, {:.2} of the budget",
            self.fresh_kib >> 10,
            idle.memory_kib >> 10,
            peak.memory_kib >> 10,
            grown / BUDGET_MIB as f64
        )?;
        for (name, idle, attacked) in self.operations() {
            let (before, during) = (idle.at(99), attacked.at(99));
            let (median, attacked_median) = (idle.median(), attacked.median());
            let ratio = during as f64 / before.max(1) as f64;
            writeln!(
                formatter,
                "{name}: p50 {median} µs idle, {attacked_median} µs attacked; p99 {before} µs idle, {during} µs attacked, \
                 ratio {ratio:.1}"
            )?;
        }
        write!(formatter, "one large page that is read takes {} µs", self.page_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_that_an_attack_could_do_is_a_problem() {
        let phase = |delay: u64, response_bytes: u64, waiting_responses: u64, memory_kib: u64| Phase {
            get_task: Delays::new(vec![delay]),
            send_message: Delays::new(vec![delay]),
            peak: Peak { response_bytes, waiting_responses, memory_kib },
        };
        let judge = |attacked| {
            let (idle, fresh_kib) = (phase(1_000, 0, 0, 100 << 10), 50 << 10);
            let measured = Measured { idle, attacked, page_us: 40_000, fresh_kib };
            (measured.kept_too_much().join("; "), measured.delayed().join("; "))
        };
        assert_eq!(judge(phase(20_000, 33 << 20, 149, 256 << 10)), Default::default());
        let (kept, delayed) = judge(phase(20_001, 33 << 20, 149, 256 << 10));
        assert!(kept.is_empty() && delayed.contains("GetTask takes 20001 µs"), "{kept}; {delayed}");
        for (attacked, wanted) in [
            (phase(1_000, (33 << 20) + 1, 149, 200 << 10), "in flight, and one caller may have 32 MiB"),
            (phase(1_000, 30 << 20, 149, (256 << 10) + 1), "memory is 262145 KiB"),
            (phase(1_000, 30 << 20, 3, 200 << 10), "only 3 responses waited"),
        ] {
            let (kept, delayed) = judge(attacked);
            assert!(kept.contains(wanted) && delayed.is_empty(), "{kept}; {delayed}");
        }
    }
}
