//! Tools that are not part of the toolchain: a pinned version of each, built once into `target/tools`, so that
//! nothing on the machine changes and every check uses the same one.

use std::path::PathBuf;
use std::process::Command;

use crate::program;

pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

pub(crate) const CARGO_DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };

impl Tool {
    /// The path of the tool, which is installed first if it is missing or of another version.
    pub(crate) fn ensure(&self) -> anyhow::Result<PathBuf> {
        let directory = program::root().join("target/tools");
        let path = directory.join("bin").join(self.name);
        if path.exists() && program::output(Command::new(&path).arg("--version"))?.contains(self.version) {
            return Ok(path);
        }
        let Tool { name, version } = self;
        println!("{name} {version} is not in target/tools yet: building it, which takes some minutes");
        let package = format!("{name}@{version}");
        let mut install = program::cargo(&["install", "--locked", "--force", "--root"]);
        program::run(install.arg(&directory).arg(package))?;
        Ok(path)
    }
}
