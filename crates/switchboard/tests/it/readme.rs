//! The README shows the example as it is.

#[test]
fn the_readme_shows_hello_agent_as_it_is() {
    let readme = include_str!("../../../../README.md");
    let example = include_str!("../../../../examples/hello-agent/src/main.rs");
    let code = example.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
    let code = code.collect::<Vec<_>>().join("\n");
    assert!(code.starts_with("use switchboard::") && code.ends_with('}'), "{code}");
    assert!(readme.contains(&format!("```rust\n{code}\n```")), "copy the example into the README:\n{code}");
}
