//! What tokens cost may be set, or left unknown.

use switchboard_host::config::pricing::DefaultPrice;
use switchboard_host::config::{Overrides, Workspace};

fn price(setting: &str) -> Result<DefaultPrice, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("hub: {{ health: {{ pricing: {{ default: {setting} }} }} }}\n");
    std::fs::write(folder.path().join("switchboard.yaml"), file).unwrap();
    let workspace = Workspace::settings_only(folder.path(), &Overrides::default());
    workspace.map(|workspace| workspace.config.hub.health.pricing.default).map_err(|problems| problems.to_string())
}

#[test]
fn a_price_is_none_or_has_a_part_for_each_direction() {
    assert_eq!(price("none").unwrap(), DefaultPrice(None));
    let set = price("{ output: 0.5 }").unwrap().0.unwrap();
    assert!((set.output.get() - 0.5).abs() < 1e-12 && (set.input.get() - 0.000_003).abs() < 1e-12);
    for wrong in ["free", "{ input: -1 }", "{ inputs: 1 }", "[1]"] {
        let refusal = price(wrong).unwrap_err();
        assert!(refusal.contains("hub.health.pricing.default: "), "{wrong}: {refusal}");
    }
}
