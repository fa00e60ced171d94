//! What tokens cost where an agent does not say what its work has cost: by its model, else by the price for any.

use std::collections::BTreeMap;

use switchboard_host::config::Config;

/// Prices of models are listed for so many tokens.
const MILLION: f64 = 1_000_000.0;

/// US dollars for one token.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Price {
    input: f64,
    output: f64,
}

/// What tokens cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pricing {
    /// By what agents call the model.
    models: BTreeMap<String, Price>,
    /// Of any other; nothing if that is to stay unknown.
    default: Option<Price>,
}

impl Pricing {
    /// As `models` and `hub.health.pricing` have it.
    pub(crate) fn configured(config: &Config) -> Self {
        let mut models = BTreeMap::new();
        for (name, model) in &config.models.0 {
            let price = Price { input: model.price.input.get() / MILLION, output: model.price.output.get() / MILLION };
            models.insert(model.model.as_ref().unwrap_or(name).clone(), price);
        }
        // Its own name finds a model too, unless another one is called so.
        for (name, model) in &config.models.0 {
            if let Some(price) = model.model.as_ref().and_then(|called| models.get(called)).copied() {
                models.entry(name.clone()).or_insert(price);
            }
        }
        let default = config.hub.health.pricing.default.0.as_ref();
        let default = default.map(|price| Price { input: price.input.get(), output: price.output.get() });
        Self { models, default }
    }

    /// What tokens of a model have cost, if anything is known of that.
    pub(crate) fn cost(&self, model: Option<&str>, input_tokens: u64, output_tokens: u64) -> Option<f64> {
        let price = model.and_then(|model| self.models.get(model)).or(self.default.as_ref())?;
        Some(input_tokens as f64 * price.input + output_tokens as f64 * price.output)
    }
}
