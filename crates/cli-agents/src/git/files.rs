//! Files and folders, touched as the account that git runs as: nothing is read, written or removed that this account
//! could not.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::super::process::{ChildCommand, OutputLimits};
use super::{COMMAND_TIMEOUT, Git};

impl Git {
    /// Removes a folder, if it is there.
    pub(crate) async fn remove_folder(&self, path: &Path) {
        if path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return;
        }
        let mut removed = self.try_remove(path).await;
        if removed.is_err() {
            // Read-only folders, such as some caches.
            self.make_readable(path).await;
            removed = self.try_remove(path).await;
        }
        if let Err(error) = removed {
            tracing::warn!(path = %path.display(), error, "a folder could not be removed");
        }
    }

    async fn try_remove(&self, path: &Path) -> Result<(), String> {
        if self.is_other_account() {
            return self.tool("rm", &["-rf".into(), "--".into(), path.into()]).await;
        }
        let path = path.to_owned();
        let removed = tokio::task::spawn_blocking(move || match path.symlink_metadata()?.is_dir() {
            true => std::fs::remove_dir_all(&path),
            false => std::fs::remove_file(&path),
        });
        removed.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    /// Makes everything in a folder readable for the account that it belongs to, and writable.
    pub(crate) async fn make_readable(&self, path: &Path) {
        let made = self.tool("chmod", &["-R".into(), "u+rwX".into(), "--".into(), path.into()]).await;
        if let Err(error) = made {
            tracing::debug!(path = %path.display(), error, "not everything could be made readable");
        }
    }

    /// Copies a file, if it is a regular one and can be read; returns whether it did.
    pub(crate) async fn copy_file(&self, from: &Path, to: &Path) -> bool {
        // A pipe would be waited for.
        if !from.symlink_metadata().is_ok_and(|found| found.is_file()) {
            return false;
        }
        if self.is_other_account() {
            let args = ["-D", "-m", "600", "--"].map(OsString::from);
            let args = args.into_iter().chain([from.into(), to.into()]);
            return self.tool("install", &args.collect::<Vec<_>>()).await.is_ok();
        }
        let folder = to.parent().unwrap_or(to);
        std::fs::create_dir_all(folder).and_then(|()| std::fs::copy(from, to)).is_ok()
    }

    /// Whether that account is not the server's own.
    pub(super) fn is_other_account(&self) -> bool {
        self.user.as_ref().is_some_and(|user| !user.is_current())
    }

    async fn tool(&self, name: &str, args: &[OsString]) -> Result<(), String> {
        let command = ChildCommand {
            program: find_tool(name)?,
            args: args.to_vec(),
            env: Vec::new(),
            cwd: "/".into(),
            user: self.user.clone(),
            input: false,
            label: name.to_owned(),
        };
        let limits = OutputLimits { line: 4 << 10, stderr: 4 << 10, output: 64 << 10 };
        let mut child = self.children.spawn(command, limits).await.map_err(|error| error.to_string())?;
        let exit = child.leave(COMMAND_TIMEOUT).await;
        if exit.code == Some(0) { Ok(()) } else { Err(exit.describe()) }
    }
}

/// A tool on the path of the server.
pub(super) fn find_tool(name: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|tool| tool.is_file());
    program.ok_or_else(|| format!("{name} is not installed on this machine"))
}
