//! Agent cards of either version.

use switchboard_a2a::card::{AgentCard, CardForm};

use super::stable::{one_line_of_json, text};

/// Reads a card and writes it in each form.
pub fn target(data: &[u8]) {
    let Ok(card) = AgentCard::decode(data) else { return };
    for form in [CardForm::V1, CardForm::V03, CardForm::Hybrid] {
        let written = card.encode(form);
        one_line_of_json(&written);
        let read = AgentCard::decode(&written);
        let read = read.unwrap_or_else(|error| panic!("{form:?}: {error} in {}", text(&written)));
        if form == CardForm::V1 {
            assert_eq!(read, card, "{}", text(&written));
        }
    }
}
