//! `cargo xtask dist`: the archive of one release, `target/dist/switchboard-VERSION-MACHINE.tar.gz`, and its SHA-256
//! checksum beside it. Order, times, owners and modes in the archive do not depend on the machine, so the same binary
//! and the same commit make the same bytes. It needs GNU tar, gzip and sha256sum.

use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pinned;
use crate::program;

/// What the archive holds as it is in the checkout.
const SOURCES: [&str; 3] = ["LICENSE", "README.md", "deploy/switchboard.service"];

/// Shells, and the file name under which each looks for the completions of a program.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "switchboard.bash"), ("fish", "switchboard.fish"), ("zsh", "_switchboard")];

pub(crate) fn run() -> anyhow::Result<()> {
    let build = ["build", "--locked", "--profile", "dist", "--package", "switchboard"];
    program::run(program::cargo(&build).env_remove("CARGO_TARGET_DIR"))?;
    let directory = program::root().join("target/dist");
    let archive = pack(&directory.join("switchboard"), &directory, &commit_time()?)?;
    println!("{}", archive.display());
    Ok(())
}

/// The time of every file in the archive, in seconds since 1970: that of the commit, unless the environment sets it in
/// the way that other build tools read too.
fn commit_time() -> anyhow::Result<String> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(time);
    }
    let mut git = Command::new("git");
    let time = program::output(git.args(["log", "-1", "--format=%ct"]).current_dir(program::root()));
    Ok(time.context("this is no git checkout: set SOURCE_DATE_EPOCH")?.trim().to_owned())
}

/// Puts the binary and what belongs to it into one archive in `directory`, with a checksum beside it.
fn pack(binary: &Path, directory: &Path, time: &str) -> anyhow::Result<PathBuf> {
    let machine = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let name = format!("switchboard-{}-{machine}", env!("CARGO_PKG_VERSION"));
    let staging = tempfile::tempdir_in(directory)?;
    let content = staging.path().join(&name);
    let completions = content.join("completions");
    std::fs::create_dir_all(&completions)?;
    pinned::copy(binary, &content.join("switchboard"))?;
    for source in SOURCES.map(Path::new) {
        let file_name = source.file_name().context("a source without a file name")?;
        pinned::copy(&program::root().join(source), &content.join(file_name))?;
    }
    for (shell, file_name) in COMPLETIONS {
        let script = program::output(Command::new(binary).args(["completion", shell]))?;
        std::fs::write(completions.join(file_name), script)?;
    }

    let archive_name = format!("{name}.tar.gz");
    let archive = directory.join(&archive_name);
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    // A name in a gzip header would come with the time of the compression.
    tar.args(["--mode=u=rwX,go=rX", "--use-compress-program=gzip --best --no-name"]);
    tar.arg(format!("--mtime=@{time}")).arg("--file").arg(&archive).arg("--directory").arg(staging.path()).arg(&name);
    program::run(&mut tar)?;
    let checksum = program::output(Command::new("sha256sum").arg(&archive_name).current_dir(directory))?;
    std::fs::write(directory.join(format!("{archive_name}.sha256")), checksum)?;
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A directory with a program that names the shell it is asked to complete for.
    fn build(mode: u32) -> anyhow::Result<tempfile::TempDir> {
        let directory = tempfile::tempdir()?;
        let binary = directory.path().join("switchboard");
        std::fs::write(&binary, "#!/bin/sh\necho \"for $2\"\n")?;
        std::fs::set_permissions(&binary, PermissionsExt::from_mode(mode))?;
        Ok(directory)
    }

    fn tar(archive: &Path, arguments: &[&str]) -> anyhow::Result<String> {
        program::output(Command::new("tar").args(arguments).arg("--file").arg(archive))
    }

    #[test]
    fn the_archive_holds_the_binary_and_what_belongs_to_it() -> anyhow::Result<()> {
        let directory = build(0o755)?;
        let archive = pack(&directory.path().join("switchboard"), directory.path(), "1700000000")?;
        let name = archive.file_name().and_then(|name| name.to_str()).context("a name")?;
        let top = name.strip_suffix(".tar.gz").context("a compressed archive")?;
        let expected = [
            ("drwxr-xr-x", ""),
            ("-rw-r--r--", "LICENSE"),
            ("-rw-r--r--", "README.md"),
            ("drwxr-xr-x", "completions/"),
            ("-rw-r--r--", "completions/_switchboard"),
            ("-rw-r--r--", "completions/switchboard.bash"),
            ("-rw-r--r--", "completions/switchboard.fish"),
            ("-rwxr-xr-x", "switchboard"),
            ("-rw-r--r--", "switchboard.service"),
        ];
        let expected = expected.map(|(mode, path)| format!("{mode} 0/0 2023-11-14 22:13:20 {top}/{path}"));
        let listed = tar(&archive, &["--list", "--verbose", "--numeric-owner", "--full-time", "--utc"])?;
        // The third word is the size.
        let listed = listed.lines().map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            [&words[..2], &words[3..]].concat().join(" ")
        });
        assert_eq!(listed.collect::<Vec<_>>(), expected);
        let completions = format!("{top}/completions/_switchboard");
        assert_eq!(tar(&archive, &["--extract", "--to-stdout", &completions])?, "for zsh\n");

        let mut check = Command::new("sha256sum");
        check.arg("--check").arg(format!("{name}.sha256")).current_dir(directory.path());
        assert_eq!(program::output(&mut check)?, format!("{name}: OK\n"));
        Ok(())
    }

    #[test]
    fn the_same_build_makes_the_same_archive_whatever_its_mode() -> anyhow::Result<()> {
        let pack = |mode| -> anyhow::Result<Vec<u8>> {
            let directory = build(mode)?;
            Ok(std::fs::read(pack(&directory.path().join("switchboard"), directory.path(), "1700000000")?)?)
        };
        assert!(pack(0o755)? == pack(0o700)?, "the archives differ");
        Ok(())
    }
}
