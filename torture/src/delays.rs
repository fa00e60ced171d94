//! Measured delays and their percentiles.

/// Delays in microseconds, in order of size.
#[derive(Clone, Debug)]
pub struct Delays(Vec<u64>);

impl Delays {
    /// In any order.
    #[must_use]
    pub fn new(mut delays: Vec<u64>) -> Self {
        delays.sort_unstable();
        Self(delays)
    }

    /// Those of several measurements together.
    #[must_use]
    pub fn all(several: &[Self]) -> Self {
        Self::new(several.iter().flat_map(|delays| delays.0.iter().copied()).collect())
    }

    /// So many of a hundred are not longer than this.
    #[must_use]
    pub fn at(&self, percent: usize) -> u64 {
        self.0.get((self.0.len() * percent / 100).min(self.0.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    /// Half of them are not longer than this.
    #[must_use]
    pub fn median(&self) -> u64 {
        self.at(50)
    }
}
