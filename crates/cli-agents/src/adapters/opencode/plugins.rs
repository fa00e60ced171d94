//! Plugins of a repository, which opencode runs whatever its options say.
//!
//! No variable or flag of version 1.18 keeps it from that: it reads its configuration in two ways, and one of them
//! minds none. So where not everything is allowed, a repository with plugins is refused.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::adapters::order::{Order, OrderError};
use crate::adapters::permissions::Permission;
use crate::adapters::repository;

const FILES: [&str; 2] = ["opencode.json", "opencode.jsonc"];
const FOLDERS: [&str; 2] = ["plugin", "plugins"];

/// A longer file is taken to name plugins.
const LONGEST: u64 = 1 << 20;

/// Refuses a folder whose plugins would be run, where not everything is allowed.
pub(crate) fn refuse(order: &Order) -> Result<(), OrderError> {
    if anything_goes(order) {
        return Ok(());
    }
    match repository::folders(&order.cwd).find_map(of) {
        None => Ok(()),
        Some(found) => Err(OrderError::Unsupported(format!(
            "opencode would run the plugins of {}, which an untrusted author may have written: remove them, or use `acp` as `cli`, with \
             `opencode acp` as its command, if you trust this folder",
            found.display()
        ))),
    }
}

/// That they are run, where everything is allowed.
pub(super) fn caution(order: &Order) -> Option<String> {
    let found = repository::folders(&order.cwd).find_map(of).filter(|_| anything_goes(order))?;
    let shown = found.display();
    Some(format!("opencode runs the plugins of {shown}: remove them if you do not trust who has written them"))
}

fn anything_goes(order: &Order) -> bool {
    order.permissions.default == Permission::Allow && order.permissions.deny.is_empty()
}

/// What names plugins in a folder.
fn of(folder: &Path) -> Option<PathBuf> {
    let inner = folder.join(".opencode");
    let files = [folder, inner.as_path()].into_iter().flat_map(|folder| FILES.map(|name| folder.join(name)));
    let named = files.filter(|file| names_plugins(file));
    FOLDERS.map(|name| inner.join(name)).into_iter().filter(|folder| folder.exists()).chain(named).next()
}

/// Whether a file may name plugins. It is not read as opencode reads it, so a doubt is a yes: the word may be spelled
/// in escapes.
fn names_plugins(file: &Path) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    if !metadata.is_file() || metadata.len() > LONGEST {
        return true;
    }
    let mut bytes = Vec::new();
    let is_read = File::open(file).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes)).is_ok();
    let text = String::from_utf8_lossy(&bytes);
    !is_read || text.contains("plugin") || text.contains("\\u")
}
