//! Each table of interop/README.md is a promise: what it names must have run, and what ran must be named there. A name
//! that ends in a question mark is a matter of chance, and need not have run.

use crate::results::Names;

/// The tests that the table under this heading names.
pub(crate) fn tests(readme: &str, wanted: &str) -> Names {
    let mut inside = false;
    let mut names = Names::new();
    for line in readme.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            inside = heading.trim() == wanted;
        } else if inside && line.starts_with('|') {
            // Every second piece stands between backquotes.
            names.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    names
}

/// One line for each test that is not in both.
pub(crate) fn differences(promised: &Names, ran: &Names) -> Vec<String> {
    let missing = promised.difference(ran).filter(|name| !name.ends_with('?'));
    let missing = missing.map(|name| format!("{name} is in interop/README.md and did not run"));
    let unknown = ran.difference(promised).filter(|name| !promised.contains(&format!("{name}?")));
    let unknown = unknown.map(|name| format!("{name} ran and is not in interop/README.md"));
    missing.chain(unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "\
# Interop
| `not-a-test` |
## one-1.0
The table of `one`:

| operation | JSON-RPC | HTTP+JSON |
|---|---|---|
| card | `jsonrpc-card` | `rest-card` |
| undo | `jsonrpc-undo` | – |
## two-2.0
| card | `jsonrpc-card` | – |
";

    fn names<const N: usize>(names: [&str; N]) -> Names {
        names.map(str::to_owned).into()
    }

    #[test]
    fn only_the_cells_under_the_heading_count() {
        assert_eq!(tests(README, "one-1.0"), names(["jsonrpc-card", "rest-card", "jsonrpc-undo"]));
        assert_eq!(tests(README, "two-2.0"), names(["jsonrpc-card"]));
        assert_eq!(tests(README, "three"), names([]));
    }

    #[test]
    fn a_promise_not_kept_and_a_test_not_promised_are_both_named() {
        let said = differences(&names(["a", "b"]), &names(["b", "c"]));
        assert_eq!(said, ["a is in interop/README.md and did not run", "c ran and is not in interop/README.md"]);
        assert!(differences(&names(["a"]), &names(["a"])).is_empty());
    }

    #[test]
    fn what_is_a_matter_of_chance_may_run_or_not() {
        assert!(differences(&names(["a?", "b?"]), &names(["a"])).is_empty());
        assert_eq!(differences(&names(["a?"]), &names(["c"])), ["c ran and is not in interop/README.md"]);
    }
}
