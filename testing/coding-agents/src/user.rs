//! Somebody else than root, for what an agent refuses to root: Claude Code does not go without permissions as root.

use std::os::unix::fs::lchown;
use std::path::Path;

use anyhow::Context;

/// A user of the machine who may do nothing in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// To give to a command.
    pub uid: u32,
    /// To give to a command.
    pub gid: u32,
}

impl User {
    /// Every Linux has this account. One that is not in the list of accounts would do for the kernel, but not for Node.
    pub const NAME: &str = "nobody";

    /// None where we are not root, and so need nobody else.
    pub fn instead_of_root() -> anyhow::Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let accounts = std::fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        Self::find(&accounts).map(Some)
    }

    fn find(accounts: &str) -> anyhow::Result<Self> {
        let found = accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, _, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
            (name == Self::NAME).then_some(Self { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
        });
        found.with_context(|| {
            format!("the machine has no account {}, which tests that must not be root run as", Self::NAME)
        })
    }

    /// Gives a folder and everything in it to the user.
    pub fn own(self, folder: &Path) -> anyhow::Result<()> {
        let mut left = vec![folder.to_path_buf()];
        while let Some(path) = left.pop() {
            lchown(&path, Some(self.uid), Some(self.gid))
                .with_context(|| format!("cannot give {} away", path.display()))?;
            if path.is_dir() && !path.is_symlink() {
                for entry in std::fs::read_dir(&path)? {
                    left.push(entry?.path());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_found_by_its_name() {
        let accounts = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\n";
        assert_eq!(User::find(accounts).unwrap(), User { uid: 65534, gid: 65533 });
        assert!(User::find("root:x:0:0::/:/bin/sh").unwrap_err().to_string().contains("no account nobody"));
    }
}
