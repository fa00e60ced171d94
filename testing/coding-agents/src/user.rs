//! A user other than root, for what an agent refuses to root: Claude Code does not go without permissions as root.

use std::os::unix::fs::lchown;
use std::path::Path;
use std::process::Command;

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
    /// The account. One that is not in the list of accounts would do for the kernel, but not for Node.
    pub const NAME: &str = "switchboard-tests";

    /// Makes the account if there is none yet; it stays for the next time. None where we are not root, and so
    /// need no other.
    pub fn instead_of_root() -> anyhow::Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        if let Some(user) = Self::there()? {
            return Ok(Some(user));
        }
        let made = make(Path::new("/usr/sbin/useradd"));
        // Another run may have been faster, which is as good.
        let Some(user) = Self::there()? else {
            made?;
            anyhow::bail!("useradd has made the account {}, but it is not in /etc/passwd", Self::NAME);
        };
        Ok(Some(user))
    }

    fn there() -> anyhow::Result<Option<Self>> {
        let accounts = std::fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        Ok(Self::find(&accounts))
    }

    fn find(accounts: &str) -> Option<Self> {
        accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, _, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
            (name == Self::NAME).then_some(Self { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
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

/// Makes the account, which has no home and no shell.
fn make(useradd: &Path) -> anyhow::Result<()> {
    let arguments = ["--system", "--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", User::NAME];
    let how = || {
        format!(
            "cannot make the account {}, which tests that must not be root run as: add an account of that name",
            User::NAME
        )
    };
    let made = Command::new(useradd).args(arguments).output();
    let made = made.with_context(|| format!("cannot run {}", useradd.display())).with_context(how)?;
    anyhow::ensure!(made.status.success(), "{}: {}", how(), String::from_utf8_lossy(&made.stderr).trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_found_by_its_name() {
        let accounts = "root:x:0:0:root:/root:/bin/bash\nswitchboard-tests:x:999:998::/nonexistent:/usr/sbin/nologin\n";
        assert_eq!(User::find(accounts), Some(User { uid: 999, gid: 998 }));
        assert_eq!(User::find("root:x:0:0::/:/bin/sh"), None);
    }

    #[test]
    fn an_account_that_cannot_be_made_says_what_to_do() {
        for program in ["/no/such/useradd", "/bin/false"] {
            let error = format!("{:#}", make(Path::new(program)).unwrap_err());
            assert!(error.contains("add an account of that name"), "{error}");
        }
    }
}
