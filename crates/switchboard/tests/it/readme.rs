//! The README shows the example as it is, and the page for callers the errors as they are.

use switchboard_a2a::{Dialect, ErrorKind};

#[test]
fn the_readme_shows_hello_agent_as_it_is() {
    let readme = include_str!("../../../../README.md");
    let example = include_str!("../../../../examples/hello-agent/src/main.rs");
    let code = example.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
    let code = code.collect::<Vec<_>>().join("\n");
    assert!(code.starts_with("use switchboard::") && code.ends_with('}'), "{code}");
    assert!(readme.contains(&format!("```rust\n{code}\n```")), "copy the example into the README:\n{code}");
}

#[test]
fn the_page_for_callers_shows_errors_as_they_are() {
    let page = include_str!("../../../../docs/calling.md");
    let errors = page.split("## Errors").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<_> = errors.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(rows.len() > 10, "{errors}");
    for kind in ErrorKind::ALL.into_iter().filter(|kind| kind.rpc_http_status() != 200) {
        let row = format!("| `{}` | -32600, HTTP {} |", kind.entry().reason, kind.rpc_http_status());
        assert!(errors.contains(&row), "a status on JSON-RPC is worth a row: {row}");
    }
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let kind = ErrorKind::ALL.into_iter().find(|kind| kind.entry().reason == cells[1]);
        let kind = kind.unwrap_or_else(|| panic!("there is no such error: {row}"));
        assert!(cells[2].starts_with(&kind.code(Dialect::V1).to_string()), "{row}");
        assert_eq!(cells[3], kind.http_status(Dialect::V1).to_string(), "{row}");
    }
}

/// `cargo run` refuses to choose between several programs, and the first command of the README is one.
#[test]
fn cargo_run_without_a_name_runs_the_program() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let read = std::process::Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
    let members = metadata["workspace_default_members"].as_array().unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter().filter(|package| members.contains(&package["id"]));
    let chosen: Vec<_> = packages.filter_map(|package| package["default_run"].as_str()).collect();
    assert_eq!(chosen, ["switchboard"]);
}
