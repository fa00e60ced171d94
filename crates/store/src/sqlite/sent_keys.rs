//! Which idempotency keys the store surely does not have, so that a new one is not looked up in the file: a look-up is a
//! hand-off to a reader thread and back, and nearly every key is new.
//!
//! A Bloom filter. It knows every key that any node of this process commits, since all of them go through the writer, which
//! adds a key before its commit. Keys of earlier processes are learned a page with each look-up; until all of them are
//! known every key is looked up, and so is every key that may be there. Keys are never taken out again: a filter that has
//! seen many millions of them excludes fewer, and the rest are looked up as before.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use switchboard_engine::store::IdempotencyScope;

use super::query::{limit, rows};
use super::readers::Reader;

/// 1 MiB: of a million keys that are not there it excludes 98 in 100.
const WORDS: usize = 1 << 17;
/// How many bits a key sets.
const PROBES: u64 = 4;
/// How many stored keys are learned with a look-up.
const PAGE: usize = 256;

/// A key as the store has it: the number of its owner, its address, and itself.
type StoredKey = (i64, String, String);

pub(crate) struct SentKeys {
    /// Made with the first key, because many servers never see one.
    words: OnceLock<Box<[AtomicU64]>>,
    /// Seeded anew in each process, so that no caller can choose keys that fill it.
    seed: RandomState,
    /// The last stored key that was learned.
    learned: Mutex<StoredKey>,
    is_complete: AtomicBool,
}

impl SentKeys {
    pub(crate) fn new() -> Self {
        Self {
            words: OnceLock::new(),
            seed: RandomState::new(),
            learned: Mutex::new((i64::MIN, String::new(), String::new())),
            is_complete: AtomicBool::new(false),
        }
    }

    /// Whether no message was committed under this key.
    pub(crate) fn excludes(&self, scope: &IdempotencyScope) -> bool {
        self.is_complete.load(Ordering::Acquire)
            && self
                .bits(scope.owner.as_str(), &scope.address, &scope.key)
                .any(|(word, bit)| word.load(Ordering::Relaxed) & bit == 0)
    }

    /// Adds a key that is about to be committed.
    pub(crate) fn add(&self, scope: &IdempotencyScope) {
        self.set(scope.owner.as_str(), &scope.address, &scope.key);
    }

    /// Learns the next stored keys, unless another reader does.
    pub(crate) fn learn(&self, Reader { connection, names }: &mut Reader) -> rusqlite::Result<()> {
        let Some(mut learned) = self.learned.try_lock() else { return Ok(()) };
        if self.is_complete.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (owner, address, key) = &*learned;
        let sql = "SELECT owner, address, key FROM send WHERE (owner, address, key) > (?1, ?2, ?3) \
                   ORDER BY owner, address, key LIMIT ?4";
        let page: Vec<StoredKey> = rows(connection, sql, (owner, address, key, limit(PAGE)), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        for (owner, address, key) in &page {
            self.set(&names.text(connection, *owner)?, address, key);
        }
        let is_last = page.len() < PAGE;
        if let Some(last) = page.into_iter().last() {
            *learned = last;
        }
        self.is_complete.store(is_last, Ordering::Release);
        Ok(())
    }

    fn set(&self, owner: &str, address: &str, key: &str) {
        for (word, bit) in self.bits(owner, address, key) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// The bits of a key, each in its word.
    fn bits(&self, owner: &str, address: &str, key: &str) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let words = self.words.get_or_init(|| (0..WORDS).map(|_| AtomicU64::new(0)).collect());
        let hash = self.seed.hash_one((owner, address, key));
        // Two halves of one hash do for as many independent ones.
        let (first, step) = (hash & u64::from(u32::MAX), hash >> 32 | 1);
        (0..PROBES).map(move |probe| {
            let at = first.wrapping_add(probe.wrapping_mul(step)) as usize;
            (&words[at / 64 % WORDS], 1 << (at % 64))
        })
    }
}
