//! Small disks: a tmpfs that fills quickly, and an ext4 image that can be told to give up, as it does after an error.
//! (A file system with files open for writing cannot simply be remounted read-only.)

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// A mounted tmpfs. Unmounted when dropped.
pub(super) struct Tmpfs(Mounted);

/// A mounted ext4 image. Unmounted when dropped.
pub(super) struct Ext4 {
    image: PathBuf,
    mounted: Mounted,
}

struct Mounted(PathBuf);

impl Tmpfs {
    pub(super) fn mount(path: &Path, mebibytes: u64) -> anyhow::Result<Self> {
        let size = format!("size={mebibytes}m");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "torture"]).arg(path))?;
        Ok(Self(Mounted(path.to_owned())))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0.0
    }

    /// Only while no process has a file open for writing.
    pub(super) fn make_read_only(&self) -> anyhow::Result<()> {
        run(Command::new("mount").args(["-o", "remount,ro"]).arg(self.path()))
    }
}

impl Ext4 {
    pub(super) fn create(image: &Path, path: &Path, mebibytes: u64) -> anyhow::Result<Self> {
        std::fs::File::create(image)?.set_len(mebibytes << 20)?;
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(image))?;
        Self::mount(image, path)
    }

    fn mount(image: &Path, path: &Path) -> anyhow::Result<Self> {
        let mounted = run(Command::new("mount").args(["-o", "loop"]).arg(image).arg(path));
        mounted.context("a loop device is needed, as root")?;
        Ok(Self { image: image.to_owned(), mounted: Mounted(path.to_owned()) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.mounted.0
    }

    /// From now on nothing can be written, also through files that are open.
    pub(super) fn abort(&self) -> anyhow::Result<()> {
        run(Command::new("mount").args(["-o", "remount,abort"]).arg(self.path()))
    }

    /// As after a restart of the machine: the journal of the file system is played back, and all is writable again.
    pub(super) fn mount_again(self) -> anyhow::Result<Self> {
        let (image, path) = (self.image, self.mounted.0.clone());
        drop(self.mounted);
        // What it finds to repair is what an abort leaves behind; 1 says that it was repaired.
        let checked = Command::new("fsck.ext4").args(["-p"]).arg(&image).status()?;
        anyhow::ensure!(matches!(checked.code(), Some(0 | 1)), "fsck.ext4 ended with {checked}");
        Self::mount(&image, &path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The end of the namespace does it too.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
