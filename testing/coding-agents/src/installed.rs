//! Where the agents are installed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::Agent;

/// The folder that `cargo xtask coding-agents` has made.
pub struct Installed {
    programs: PathBuf,
}

impl Installed {
    /// The one that the variable CODING_AGENTS names.
    pub fn from_environment() -> anyhow::Result<Self> {
        let folder = std::env::var_os("CODING_AGENTS").context(
            "the variable CODING_AGENTS must name the folder of the installed agents: run `cargo xtask coding-agents`, which sets it",
        )?;
        Self::at(Path::new(&folder))
    }

    fn at(folder: &Path) -> anyhow::Result<Self> {
        let programs = folder.join("bin");
        for agent in Agent::ALL {
            let program = programs.join(agent.name());
            anyhow::ensure!(
                program.exists(),
                "CODING_AGENTS is {}, but there is no {}",
                folder.display(),
                program.display()
            );
        }
        Ok(Self { programs })
    }

    /// The program of an agent.
    pub fn program(&self, agent: Agent) -> PathBuf {
        self.programs.join(agent.name())
    }

    /// What PATH must be for the agents to run: their own folder, which has the Node that some of them need, and the system's.
    pub fn path(&self) -> OsString {
        before_the_system(&self.programs)
    }

    /// Where Node may keep what it has compiled, so that not every start of an agent compiles it anew.
    pub fn compile_cache(&self) -> PathBuf {
        self.programs.with_file_name("compile-cache")
    }

    /// What PATH must be with one agent's program put into a new folder: others cannot reach it where it is installed if the
    /// checkout is in a user's home. It must be a program by itself.
    pub fn copied(&self, agent: Agent, folder: &Path) -> anyhow::Result<OsString> {
        std::fs::create_dir(folder)?;
        let program = self.program(agent).canonicalize()?;
        let copy = folder.join(agent.name());
        // A link takes no room, but does not reach other file systems.
        std::fs::hard_link(&program, &copy).or_else(|_| std::fs::copy(&program, &copy).map(drop))?;
        Ok(before_the_system(folder))
    }
}

fn before_the_system(programs: &Path) -> OsString {
    let mut path = programs.as_os_str().to_owned();
    path.push(":/usr/local/bin:/usr/bin:/bin");
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_the_agents_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Installed::at(folder.path()).err().unwrap().to_string();
        assert!(error.contains(folder.path().to_str().unwrap()) && error.ends_with("bin/claude"), "{error}");
    }

    #[test]
    fn the_programs_come_first_in_the_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        for agent in Agent::ALL {
            std::fs::write(folder.path().join("bin").join(agent.name()), "").unwrap();
        }
        let installed = Installed::at(folder.path()).unwrap();
        let path = installed.path().into_string().unwrap();
        assert!(path.starts_with(installed.program(Agent::Claude).parent().unwrap().to_str().unwrap()), "{path}");
    }
}
