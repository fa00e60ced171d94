//! A histogram of durations with buckets that grow by a tenth: quantiles are within 5 %, and sums of histograms are exact.

use serde::{Deserialize, Serialize};

const GROWTH: f64 = 1.1;

/// How many durations fell into each bucket, in the order of the buckets. Bucket 0 is for less than a millisecond.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Histogram(Vec<(u16, u64)>);

impl Histogram {
    pub(crate) fn add(&mut self, milliseconds: u64) {
        self.add_many(bucket(milliseconds), 1);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            self.add_many(*bucket, *count);
        }
    }

    /// The duration that this share of all is not above; nothing if there is none.
    pub(crate) fn quantile(&self, share: f64) -> Option<u64> {
        let total: u64 = self.0.iter().map(|(_, count)| count).sum();
        let rank = ((total as f64 * share).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        for (bucket, count) in &self.0 {
            seen += count;
            if seen >= rank {
                return Some(middle(*bucket));
            }
        }
        None
    }

    fn add_many(&mut self, bucket: u16, count: u64) {
        match self.0.binary_search_by_key(&bucket, |(known, _)| *known) {
            Ok(index) => self.0[index].1 += count,
            Err(index) => self.0.insert(index, (bucket, count)),
        }
    }
}

fn bucket(milliseconds: u64) -> u16 {
    if milliseconds == 0 {
        return 0;
    }
    let index = ((milliseconds as f64).ln() / GROWTH.ln()).floor();
    // The longest duration there is falls into a bucket below 500.
    index as u16 + 1
}

fn middle(bucket: u16) -> u64 {
    if bucket == 0 { 0 } else { GROWTH.powf(f64::from(bucket) - 0.5).round() as u64 }
}

#[cfg(test)]
mod tests {
    use super::Histogram;

    #[test]
    fn quantiles_are_within_five_percent() {
        let mut all = Histogram::default();
        for number in 1..=1_000_u64 {
            let mut one = Histogram::default();
            one.add(number * 37);
            all.merge(&one);
        }
        for (share, exact) in [(0.5, 18_500.0), (0.95, 35_150.0), (1.0, 37_000.0), (0.001, 37.0)] {
            let found = all.quantile(share).unwrap_or_default() as f64;
            assert!((found - exact).abs() <= exact * 0.05 + 0.5, "{share}: {found}, not {exact}");
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
        let mut nothing = Histogram::default();
        nothing.add(0);
        assert_eq!(nothing.quantile(0.95), Some(0));
        let mut longest = Histogram::default();
        longest.add(u64::MAX);
        assert!(longest.quantile(0.5) > Some(u64::MAX / 2));
    }
}
