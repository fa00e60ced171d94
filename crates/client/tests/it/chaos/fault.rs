//! What can go wrong on one connection, decided by a seed, and how often it really did.

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers that look random and are the same for the same seed (splitmix64).
#[derive(Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64, connection: u64) -> Self {
        Self(seed.wrapping_mul(0xD134_2543_DE82_EF95) ^ connection.wrapping_mul(0x9FB2_1C65_1E98_DF25))
    }

    /// Below a bound.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// Everything that goes wrong on a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) order: Order,
    pub(super) end: End,
    /// Everything comes in pieces of any size.
    pub(super) is_split: bool,
    /// Everything comes a little later.
    pub(super) is_late: bool,
}

/// The order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Kept,
    /// Some events come twice.
    Twice,
    /// Some events come after the next one.
    Swapped,
}

/// How it ends, after so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// When all is said.
    Whole,
    /// It is torn.
    Cut(usize),
    /// Nothing comes for a while, and then it is torn.
    Stall(usize),
    /// In order, wherever that is.
    Truncate(usize),
}

/// What has happened to a stream of events.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    Cut,
    Stalled,
    Truncated,
    Twice,
    Swapped,
    Split,
    Late,
}

/// How many streams had which trouble, over all runs.
#[derive(Debug, Default)]
pub(super) struct Met {
    troubles: [AtomicU64; Trouble::ALL.len()],
    stripped: AtomicU64,
}

impl Trouble {
    pub(super) const ALL: [Self; 7] =
        [Self::Cut, Self::Stalled, Self::Truncated, Self::Twice, Self::Swapped, Self::Split, Self::Late];
}

impl Met {
    pub(super) fn add(&self, trouble: Trouble) {
        self.troubles[trouble as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count(&self, trouble: Trouble) -> u64 {
        self.troubles[trouble as usize].load(Ordering::Relaxed)
    }

    /// A subscription began without the task.
    pub(super) fn strip(&self) {
        self.stripped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stripped(&self) -> u64 {
        self.stripped.load(Ordering::Relaxed)
    }
}

impl Fault {
    pub(super) const NONE: Self = Self { order: Order::Kept, end: End::Whole, is_split: false, is_late: false };

    pub(super) fn roll(dice: &mut Dice) -> Self {
        // Short ones hit heads, cards and first events, long ones the middle of a stream.
        let most = [400, 4_000, 40_000, 80_000][dice.below(4)];
        let at = dice.below(most);
        let end = match dice.below(8) {
            0 | 1 => End::Whole,
            2..=4 => End::Cut(at),
            5 => End::Stall(at),
            _ => End::Truncate(at),
        };
        let order = match dice.below(6) {
            0 => Order::Twice,
            1 => Order::Swapped,
            _ => Order::Kept,
        };
        Self { order, end, is_split: dice.below(8) == 0, is_late: dice.below(8) == 0 }
    }
}
