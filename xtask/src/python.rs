//! The machine's Python, which is all that tests with programs of others need, and the virtual environments made with it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pinned;
use crate::program;

/// The interpreter that makes the environments.
pub(crate) struct Python {
    version: String,
}

/// What the interpreter must have: the version the test programs are written for, and what a virtual environment takes.
const CAPABLE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";
const NEEDED: &str =
    "the tests with programs of others need python3, 3.11 or newer, with venv (on Debian: python3 and python3-venv)";

impl Python {
    /// The machine's own; a fresh Debian gets it installed where we may.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let capable = || program::succeeds(Command::new("python3").args(["-c", CAPABLE]));
        if !capable() {
            let root = program::output(Command::new("id").arg("-u")).is_ok_and(|user| user.trim() == "0");
            anyhow::ensure!(root && program::succeeds(Command::new("apt-get").arg("--version")), NEEDED);
            program::run(Command::new("apt-get").args(["update", "--quiet"]))?;
            let packages = ["install", "--quiet", "--yes", "python3", "python3-venv"];
            program::run(Command::new("apt-get").args(packages).env("DEBIAN_FRONTEND", "noninteractive"))?;
            anyhow::ensure!(capable(), NEEDED);
        }
        let version = "import sys; print(sys.executable, sys.version)";
        Ok(Self { version: program::output(Command::new("python3").args(["-c", version]))? })
    }

    /// The interpreter of an environment that has exactly what the requirements name.
    pub(crate) fn environment(&self, directory: &Path, requirements: &Path) -> anyhow::Result<PathBuf> {
        let python = directory.join("bin/python");
        let pins = format!("{}{}", self.version, pinned::read(requirements)?);
        pinned::ensure(directory, &pins, || {
            program::run(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
            let mut install = Command::new(&python);
            install.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]);
            // The pins are complete: whatever else a package would like to bring along must be pinned too.
            program::run(install.args(["--no-deps", "--requirement"]).arg(requirements))?;
            program::run(Command::new(&python).args(["-m", "pip", "--disable-pip-version-check", "check"]))
        })?;
        Ok(python)
    }
}
