//! Installs the agents that `testing/coding-agents/package-lock.json` pins, once, into `target/coding-agents`, and puts what
//! one calls them by into its folder `bin`, together with the Node that two of them need.

use anyhow::Context;
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::node::Node;
use crate::pinned;
use crate::program;
use crate::python::Python;

struct Agent {
    name: &'static str,
    package: &'static str,
    /// Where the packages have its program, given the name of the machine as npm packages write it.
    program: fn(&str) -> String,
}

/// Claude Code and opencode come with a script that puts the machine's own program in place of a stand-in. Scripts are not
/// run here, so the link goes to that program itself.
const AGENTS: [Agent; 4] = [
    Agent {
        name: "claude",
        package: "@anthropic-ai/claude-code",
        program: |machine| format!("@anthropic-ai/claude-code-{machine}/claude"),
    },
    Agent { name: "codex", package: "@openai/codex", program: |_| ".bin/codex".to_owned() },
    Agent { name: "gemini", package: "@google/gemini-cli", program: |_| ".bin/gemini".to_owned() },
    Agent { name: "opencode", package: "opencode-ai", program: |machine| format!("opencode-{machine}/bin/opencode") },
];

/// The folder with the agents, which are installed first if they are not there yet.
pub(super) fn install() -> anyhow::Result<PathBuf> {
    let sources = program::root().join("testing/coding-agents");
    let directory = program::root().join("target/coding-agents/installed");
    let node = Node::ensure(&Python::find()?)?;
    pinned::ensure(&directory, &node.pins(&sources)?, || {
        println!("the coding agents are not in target/coding-agents yet: installing them, which takes 1.6 GB");
        node.install(&sources, &directory)?;
        let package = pinned::read(&sources.join("package.json"))?;
        let package: Value = serde_json::from_str(&package).context("testing/coding-agents/package.json")?;
        let programs = directory.join("bin");
        std::fs::create_dir(&programs).with_context(|| format!("cannot create {}", programs.display()))?;
        link(&node.program(), &programs.join("node"))?;
        for agent in &AGENTS {
            let pin = package.pointer("/dependencies").and_then(|pins| pins.get(agent.package)?.as_str());
            let pin =
                pin.with_context(|| format!("testing/coding-agents/package.json does not pin {}", agent.package))?;
            put(agent, pin, &directory).with_context(|| format!("cannot install {} {pin}", agent.package))?;
        }
        Ok(())
    })?;
    Ok(directory)
}

/// Puts an agent's program into `bin`, and sees that it runs and is of that version.
fn put(agent: &Agent, pin: &str, directory: &Path) -> anyhow::Result<()> {
    let machine = machine();
    let target = directory.join("node_modules").join((agent.program)(&machine));
    anyhow::ensure!(target.exists(), "it has no program for {machine}: there is no {}", target.display());
    let programs = directory.join("bin");
    let program = programs.join(agent.name);
    link(&target, &program)?;
    // Some write to their home even when they are only asked for their version.
    let home = tempfile::tempdir()?;
    let path = std::env::join_paths([programs.as_path(), Path::new("/usr/bin"), Path::new("/bin")])?;
    let mut command = Command::new(&program);
    let version = program::output(command.arg("--version").env_clear().env("HOME", home.path()).env("PATH", path))?;
    let is_pinned = version.split_whitespace().any(|word| word == pin);
    anyhow::ensure!(is_pinned, "it says that its version is {:?}", version.trim());
    println!("{} {pin}", agent.name);
    Ok(())
}

fn link(target: &Path, link: &Path) -> anyhow::Result<()> {
    symlink(target, link).with_context(|| format!("cannot link {} to {}", link.display(), target.display()))
}

/// The name that npm packages have for the kind of machine this is.
fn machine() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{system}-{processor}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const AGENT: Agent = Agent { name: "agent", package: "some-agent", program: |_| "agent".to_owned() };

    /// A directory whose agent is this script, if there is one.
    fn directory(script: Option<&str>) -> anyhow::Result<tempfile::TempDir> {
        let directory = tempfile::tempdir()?;
        for folder in ["bin", "node_modules"] {
            std::fs::create_dir(directory.path().join(folder))?;
        }
        if let Some(script) = script {
            let program = directory.path().join("node_modules/agent");
            std::fs::write(&program, script)?;
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755))?;
        }
        Ok(directory)
    }

    #[test]
    fn an_agent_of_the_pinned_version_is_put_where_it_is_called() -> anyhow::Result<()> {
        let directory = directory(Some("#!/bin/sh\necho agent-cli 1.2.3\n"))?;
        put(&AGENT, "1.2.3", directory.path())?;
        assert!(directory.path().join("bin/agent").exists());
        Ok(())
    }

    #[test]
    fn what_is_missing_or_of_another_version_is_said() -> anyhow::Result<()> {
        for (script, expected) in [
            (None, "it has no program for "),
            (Some("#!/bin/sh\necho 1.2.30\n"), "it says that its version is \"1.2.30\""),
            (Some("#!/bin/sh\nexit 1\n"), "agent --version ended with exit status: 1"),
        ] {
            let directory = directory(script)?;
            let told =
                put(&AGENT, "1.2.3", directory.path()).map_or_else(|error| error.to_string(), |()| "ok".to_owned());
            assert!(told.starts_with(expected), "{told}");
        }
        Ok(())
    }
}
