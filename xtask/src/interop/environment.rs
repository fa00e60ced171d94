//! Where the SDKs live: a virtual environment, a node_modules folder or a build each under `target/interop`, made from the
//! pins in `interop/` and kept until those change.

use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::node::Node;
use crate::pinned;
use crate::program;
use crate::python::Python;

/// Makes the environments, and the commands that run the programs of the tests in them.
pub(crate) struct Environments<'a> {
    /// `interop/`: pins and test programs.
    sources: &'a Path,
    /// `target/interop`.
    directory: PathBuf,
    python: Python,
}

impl<'a> Environments<'a> {
    pub(crate) fn new(sources: &'a Path, directory: PathBuf, python: Python) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(Self { sources, directory, python })
    }

    /// Where a server of this SDK's tests writes what it has to say.
    pub(crate) fn log(&self, folder: &str) -> PathBuf {
        self.directory.join(format!("{folder}.log"))
    }

    /// The folder's `client.py` or `server.py`, ready to be run.
    pub(crate) fn python(&self, folder: &str, program: &str) -> anyhow::Result<Command> {
        self.python_program(folder, &self.sources.join(folder).join(format!("{program}.py")))
    }

    /// A program from anywhere, in the environment of a folder.
    pub(crate) fn python_program(&self, folder: &str, program: &Path) -> anyhow::Result<Command> {
        let requirements = self.sources.join(folder).join("requirements.txt");
        let python = self.python.environment(&self.directory.join(folder), &requirements)?;
        let mut command = Command::new(python);
        command
            .arg(program)
            // Nothing of a run stays behind in the sources.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(&self.directory);
        Ok(command)
    }

    /// The folder's `client.mjs` or `server.mjs`, ready to be run.
    pub(crate) fn javascript(&self, folder: &str, program: &str) -> anyhow::Result<Command> {
        let sources = self.sources.join(folder);
        copy_programs(self.sources, &self.directory)?;
        self.javascript_program(folder, &sources.join(format!("{program}.mjs")))
    }

    /// A program from anywhere, with the packages of a folder.
    pub(crate) fn javascript_program(&self, folder: &str, program: &Path) -> anyhow::Result<Command> {
        let node = Node::ensure(&self.python)?;
        let directory = self.directory.join(folder);
        let sources = self.sources.join(folder);
        pinned::ensure(&directory, &node.pins(&sources)?, || node.install(&sources, &directory))?;
        // A module finds its packages beside itself, so the programs go where the packages are.
        copy_programs(program.parent().unwrap_or(&sources), &directory)?;
        let name = program.file_name().context("a program has a name")?;
        let mut command = Command::new(node.program());
        command.arg(name).current_dir(&directory);
        Ok(command)
    }

    /// The folder's `server`, built as it is now.
    pub(crate) fn rust(&self, folder: &str) -> anyhow::Result<Command> {
        program::run(&mut program::cargo_in(&format!("interop/{folder}"), &["build", "--locked", "--bin", "server"]))?;
        Ok(Command::new(self.directory.join(folder).join("debug/server")))
    }
}

/// Every module of a folder.
fn copy_programs(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "mjs") {
            pinned::copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
