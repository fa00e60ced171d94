//! `cargo xtask docs`: docs/configuration.md, made from the schemas that the program itself prints, so that page,
//! schema and code cannot drift apart; and the words of interop/RESULTS.md. The tests check that both are current.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::interop;
use crate::program;
use crate::steps::Counts;

const HEAD: &str = "\
# Configuration

Made by `cargo xtask docs` from `switchboard config schema`; edit the doc comments in `crates/host/src/config`, and for
agents those in `crates/fleet/src/config`.

All of it is optional. Settings stand in `switchboard.yaml` and agents in `agents.yaml` or `agents.d/*.yaml`, in the
workspace folder (`--workspace`, default the current one). A flag wins over a variable, a variable over the file, the
file over the default. Times are written `250ms`, `30s`, `10m`, `7d`; sizes `64KiB`, `10GiB`. `${VAR}` and
`${VAR:-default}` are filled in when a file is read. `switchboard config check` says what is in force and where it comes
from; an unknown key or a wrong value is an error that names the file, the line and what would be right.
";

/// Writes the pages.
pub(crate) fn run() -> anyhow::Result<()> {
    let path = page();
    std::fs::write(&path, render()?)?;
    println!("wrote {}", path.display());
    interop::update_page()
}

/// Fails if the page is not what would be written.
pub(crate) fn check() -> anyhow::Result<Counts> {
    let written = std::fs::read_to_string(page()).unwrap_or_default();
    anyhow::ensure!(written == render()?, "docs/configuration.md is out of date: run `cargo xtask docs`");
    Ok(Counts::ONE)
}

fn page() -> PathBuf {
    program::root().join("docs/configuration.md")
}

fn render() -> anyhow::Result<String> {
    let program = program::build_workspace()?.join("switchboard");
    let settings = schema(&program, &[])?;
    let agents = schema(&program, &["agents"])?;
    let mut page = HEAD.to_owned();
    page.push_str("\n## switchboard.yaml\n");
    for (section, value) in members(&settings["properties"]) {
        let definition = resolve(&settings, value);
        write!(page, "\n### {section}\n\n{}\n\n", text(value))?;
        page.push_str("| key | default | variable | meaning |\n|---|---|---|---|\n");
        if definition["properties"].is_object() {
            rows(&mut page, &settings, definition, section)?;
        } else {
            // Its keys are names of the operator's choice, so no variable sets them.
            writeln!(page, "| `{section}.NAME` | – | – | {} |", by_name(definition))?;
        }
    }
    page.push_str("\n## agents.yaml\n\nA list under `agents`. Any agent that is hosted here has these keys.\n");
    agent_table(&mut page, &agents, "Agent")?;
    page.push_str("\nOne that comes with Switchboard also has this one.\n");
    agent_table(&mut page, &agents, "BuiltinAgent")?;
    page.push_str("\nOne that is a command-line program ([cli-agents.md](cli-agents.md)) also has these.\n");
    agent_table(&mut page, &agents, "CliAgent")?;
    page.push_str("\nAn agent elsewhere, which commands can call by its name, has these.\n");
    agent_table(&mut page, &agents, "RemoteAgent")?;
    Ok(page)
}

fn schema(program: &Path, arguments: &[&str]) -> anyhow::Result<Value> {
    let mut command = Command::new(program);
    Ok(serde_json::from_str(&program::output(command.args(["config", "schema"]).args(arguments))?)?)
}

/// One row a key; a nested section's keys follow with their path.
fn rows(page: &mut String, schema: &Value, definition: &Value, path: &str) -> anyhow::Result<()> {
    for (key, value) in members(&definition["properties"]) {
        let path = format!("{path}.{key}");
        let target = resolve(schema, value);
        if target["properties"].is_object() {
            rows(page, schema, target, &path)?;
            continue;
        }
        let variable = variable(&path);
        writeln!(page, "| `{path}` | {} | `{variable}` | {} |", default(value), text(value))?;
    }
    Ok(())
}

fn agent_table(page: &mut String, schema: &Value, kind: &str) -> anyhow::Result<()> {
    page.push_str("\n| key | default | meaning |\n|---|---|---|\n");
    for (key, value) in members(&schema["$defs"][kind]["properties"]) {
        agent_rows(page, schema, key, value)?;
    }
    Ok(())
}

fn agent_rows(page: &mut String, schema: &Value, path: &str, value: &Value) -> anyhow::Result<()> {
    let target = resolve(schema, value);
    let nested = if target["items"].is_object() { resolve(schema, &target["items"]) } else { target };
    if nested["properties"].is_object() {
        // A mapping that may be left out as a whole has something to say as a whole.
        if value["anyOf"].is_array() {
            writeln!(page, "| `{path}` | {} | {} |", default(value), text(value))?;
        }
        let separator = if target["items"].is_object() { "[]." } else { "." };
        for (key, value) in members(&nested["properties"]) {
            agent_rows(page, schema, &format!("{path}{separator}{key}"), value)?;
        }
        return Ok(());
    }
    writeln!(page, "| `{path}` | {} | {} |", default(value), text(value))?;
    Ok(())
}

fn members(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// What a `$ref` points at, also one that may be left out; the value itself if it is none.
fn resolve<'a>(schema: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value["$ref"].as_str().or_else(|| value["anyOf"][0]["$ref"].as_str());
    let reference = reference.and_then(|reference| reference.strip_prefix("#/$defs/"));
    reference.map_or(value, |name| &schema["$defs"][name])
}

fn default(value: &Value) -> String {
    match &value["default"] {
        Value::Null => "–".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

fn text(value: &Value) -> String {
    let description = value["description"].as_str().or(value["title"].as_str()).unwrap_or_default();
    description.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// What stands under each name of a mapping: its keys, and what of them has to be there.
fn by_name(definition: &Value) -> String {
    fn shape(value: &Value) -> String {
        let Some(keys) = value["properties"].as_object() else {
            return value["type"].as_str().unwrap_or("value").to_owned();
        };
        let is_required = |key: &str| value["required"].as_array().is_some_and(|all| all.iter().any(|one| one == key));
        let mark = |key: &str| if is_required(key) { "" } else { "?" };
        let keys: Vec<String> =
            keys.iter().map(|(key, value)| format!("{key}{}: {}", mark(key), shape(value))).collect();
        format!("{{ {} }}", keys.join(", "))
    }
    format!("`{}`; what has a `?` may be left out", shape(&definition["additionalProperties"]))
}

/// `store.maxQueueDelay` is `SWITCHBOARD_STORE_MAX_QUEUE_DELAY`.
fn variable(path: &str) -> String {
    let mut variable = "SWITCHBOARD_".to_owned();
    for character in path.chars() {
        match character {
            '.' => variable.push('_'),
            upper if upper.is_ascii_uppercase() => {
                variable.push('_');
                variable.push(upper);
            }
            lower => variable.push(lower.to_ascii_uppercase()),
        }
    }
    variable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_named_after_their_keys() {
        assert_eq!(variable("store.maxQueueDelay"), "SWITCHBOARD_STORE_MAX_QUEUE_DELAY");
        assert_eq!(variable("store.retention.maxAge"), "SWITCHBOARD_STORE_RETENTION_MAX_AGE");
    }
}
