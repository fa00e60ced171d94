//! A disk that fills up, and one that turns read-only, under the real server: typed errors, no crash, nothing
//! acknowledged lost, and work again as soon as there is room.
//!
//! The disks are small mounts in a mount namespace of this process alone, so that nothing outside can see them.

mod mount;
mod probe;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::compare::{self, Problems};
use crate::disk::mount::{Ext4, Tmpfs};
use crate::disk::probe::Probe;
use crate::server::{ANY_PORT, ServerSetup, folder, tail};

const TMPFS_MIB: u64 = 16;
/// Given back when the disk is to have room again. More than half: the log is copied into the file before it is cut, so
/// for a moment everything is there twice.
const BALLAST_MIB: u64 = 10;
const EXT4_MIB: u64 = 24;

/// Runs this program again in a mount namespace of its own.
pub fn in_namespace(binary: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "--"])
        .arg(std::env::current_exe()?)
        .args(["disk", "--inside", "--binary"])
        .arg(binary);
    let status = command.status().context("cannot start unshare, which is in Debian's util-linux")?;
    anyhow::ensure!(
        status.success(),
        "the disk tests failed, or mounting is not permitted here: they need root and mount namespaces ({status})"
    );
    Ok(())
}

/// All disk tests; to be called in a mount namespace.
pub fn run(binary: &Path) -> anyhow::Result<Problems> {
    let scratch = tempfile::tempdir()?;
    let told = |name: &str| format!("{name}; the server's log ends with:\n{}\n", tail(&log(scratch.path(), name)));
    let mut problems = full(binary, scratch.path()).with_context(|| told("full"))?;
    problems.extend(read_only(binary, scratch.path()).with_context(|| told("read-only"))?);
    Ok(problems)
}

fn log(scratch: &Path, name: &str) -> PathBuf {
    scratch.join(format!("{name}.log"))
}

fn server_setup(binary: &Path, scratch: &Path, workspace: &Path, name: &str) -> ServerSetup {
    ServerSetup {
        binary: binary.to_owned(),
        workspace: workspace.to_owned(),
        durability: "full",
        log: log(scratch, name),
        bind: ANY_PORT,
    }
}

fn full(binary: &Path, scratch: &Path) -> anyhow::Result<Problems> {
    let disk = Tmpfs::mount(&folder(scratch, "full")?, TMPFS_MIB)?;
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; usize::try_from(BALLAST_MIB << 20)?])?;
    let setup = server_setup(binary, scratch, disk.path(), "full");
    let mut server = setup.start()?;
    let mut probe = Probe::new(server.address);
    probe.prepare()?;
    probe.fill()?;
    probe.refuses(&server, "full")?;
    probe.expect(server.is_alive(), "the server ended when the disk was full");
    let facts = probe.journal.facts();
    probe.found(compare::endings(server.address, &facts)?);

    std::fs::remove_file(&ballast)?;
    server.wait_until_ready().context("not ready although there is room again")?;
    probe.accepts()?;
    probe.finish()?;
    let facts = probe.journal.facts();
    probe.found(compare::compare(server.address, &facts)?);
    server.kill()?;
    let server = setup.start()?;
    probe.found(compare::compare(server.address, &facts)?);
    probe.found(setup.check()?);
    server.kill()?;

    disk.make_read_only()?;
    let (code, said) = setup.refused()?;
    let clear = code == Some(1) && said.contains("read-only") && said.contains(&*disk.path().to_string_lossy());
    probe.expect(clear, &format!("on a read-only data directory: exit code {code:?}, {said:?}"));
    Ok(probe.problems())
}

fn read_only(binary: &Path, scratch: &Path) -> anyhow::Result<Problems> {
    let image = scratch.join("disk.img");
    let disk = Ext4::create(&image, &folder(scratch, "read-only")?, EXT4_MIB)?;
    let setup = server_setup(binary, scratch, disk.path(), "read-only");
    let mut server = setup.start()?;
    let mut probe = Probe::new(server.address);
    probe.prepare()?;
    probe.accepts()?;
    disk.abort()?;
    probe.refuses(&server, "")?;
    probe.expect(server.is_alive(), "the server ended when its disk became read-only");
    let facts = probe.journal.facts();
    probe.found(compare::endings(server.address, &facts)?);
    server.kill()?;
    let (code, said) = setup.refused()?;
    probe.expect(code == Some(1), &format!("on a read-only disk: exit code {code:?}, {said:?}"));

    let disk = disk.mount_again()?;
    let server = setup.start()?;
    probe.found(compare::compare(server.address, &facts)?);
    probe.found(setup.check()?);
    server.kill()?;
    drop(disk);
    Ok(probe.problems())
}
