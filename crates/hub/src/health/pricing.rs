//! What tokens cost where an agent does not say what its work has cost.

/// US dollars for one token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pricing {
    pub(crate) input: f64,
    pub(crate) output: f64,
}

impl Default for Pricing {
    fn default() -> Self {
        Self { input: 0.000_003, output: 0.000_015 }
    }
}

impl Pricing {
    pub(crate) fn cost(self, input_tokens: u64, output_tokens: u64) -> f64 {
        input_tokens as f64 * self.input + output_tokens as f64 * self.output
    }
}
