//! The page about the checks, which has their texts.

use std::collections::BTreeSet;

use switchboard_check::checks;

#[test]
fn every_check_has_a_row_on_the_page_in_the_order_of_the_report() {
    let page = include_str!("../../../../docs/checking.md");
    let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |check: &switchboard_check::Check| {
        let texts = [check.title, check.severity.as_str(), check.rule, check.fix];
        assert!(!texts.contains(&""), "{} lacks a cell on the page: {texts:?}", check.id);
        format!("| `{}` | {} |", check.id, texts.join(" | "))
    };
    assert_eq!(listed, checks().map(row).collect::<Vec<_>>());
    let names: BTreeSet<&str> = checks().map(|check| check.id).collect();
    assert_eq!(names.len(), listed.len(), "two checks have the same name");
}
