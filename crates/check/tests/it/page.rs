//! The page about the checks lists them as they are.

use switchboard_check::checks;

#[test]
fn the_page_lists_every_check_as_it_is() {
    let page = include_str!("../../../../docs/checking.md");
    let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = checks()
        .map(|check| format!("| `{}` | {} | {} | {} |", check.id, check.title, check.severity.as_str(), check.rule))
        .collect();
    assert_eq!(listed, expected, "the table should be\n{}", expected.join("\n"));
}

#[test]
fn names_of_checks_are_unique() {
    let mut ids: Vec<&str> = checks().map(|check| check.id).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}
