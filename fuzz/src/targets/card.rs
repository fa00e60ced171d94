//! Agent cards of either version.

use switchboard_a2a::card::{AgentCard, CardFormat};

use super::stable::{one_line_of_json, text};

/// Reads a card and writes it in each form.
pub fn target(data: &[u8]) {
    let Ok(card) = AgentCard::decode(data) else { return };
    for form in [CardFormat::V1, CardFormat::V03, CardFormat::Hybrid] {
        let written = card.encode(form);
        one_line_of_json(&written);
        let read = AgentCard::decode(&written);
        let read = read.unwrap_or_else(|error| panic!("{form:?}: {error} in {}", text(&written)));
        if form == CardFormat::V1 {
            assert_eq!(read, card, "{}", text(&written));
        }
    }
}
