//! What tokens cost may be set, or left unknown.

use switchboard_host::config::models::Models;
use switchboard_host::config::pricing::DefaultPrice;
use switchboard_host::config::{Overrides, Workspace};

fn price(setting: &str) -> Result<DefaultPrice, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("hub: {{ health: {{ pricing: {{ default: {setting} }} }} }}\n");
    std::fs::write(folder.path().join("switchboard.yaml"), file).unwrap();
    let workspace = Workspace::settings_only(folder.path(), &Overrides::default());
    workspace.map(|workspace| workspace.config.hub.health.pricing.default).map_err(|problems| problems.to_string())
}

fn models(setting: &str) -> Result<Models, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("switchboard.yaml"), format!("models: {setting}\n")).unwrap();
    let workspace = Workspace::settings_only(folder.path(), &Overrides::default());
    workspace.map(|workspace| workspace.config.models).map_err(|problems| problems.to_string())
}

#[test]
fn a_model_has_a_whole_price_and_perhaps_another_name() {
    assert_eq!((models("{}").unwrap(), models("").unwrap()), Default::default());
    let set = models(
        "{ small: { model: gpt-5-mini, price: { input: 0.25, output: 2 } }, big: { price: { input: 3, output: 15 } } }",
    );
    let set = set.unwrap().0;
    assert_eq!((set["small"].model.as_deref(), set["big"].model.as_deref()), (Some("gpt-5-mini"), None));
    assert!((set["small"].price.output.get() - 2.0).abs() < f64::EPSILON);
    for wrong in [
        "[]",
        "{ a: 1 }",
        "{ a: {} }",
        "{ a: { price: {} } }",
        "{ a: { price: { input: 1 } } }",
        "{ a: { price: { input: 1, output: cheap } } }",
        "{ a: { prize: { input: 1, output: 1 } } }",
        "{ a: { price: { input: 1, output: 1, cached: 1 } } }",
        "{ a: { model: '', price: { input: 1, output: 1 } } }",
        "{ a: { model: m, price: { input: 1, output: 1 } }, b: { model: m, price: { input: 2, output: 2 } } }",
        "{ a: { model: b, price: { input: 1, output: 1 } }, b: { price: { input: 2, output: 2 } } }",
    ] {
        let refusal = models(wrong).unwrap_err();
        assert!(refusal.contains("models: "), "{wrong}: {refusal}");
    }
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
