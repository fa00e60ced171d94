//! Whether Gemini CLI obeys the settings of a repository: only if the operator trusts it.
//!
//! In a folder that it trusts, the program takes settings from `.gemini`: servers of tools and hooks, which are
//! commands to run, and tools that need no question. What counts is asked in several places, and a variable decides it
//! in all of them. Run for a turn, it refuses to work in a folder that it does not trust, and has no option to do
//! everything there. So there the flag says in the end that the folder is trusted: settings have been read by then, but
//! the variables in a file `.env` are read once more, and all of them become its own. Among them may be where its keys
//! are sent, and what the servers of the operator load. Where everything is allowed that adds nothing; where not, such
//! a folder is refused.

use std::path::{Path, PathBuf};

use crate::adapters::order::{Order, OrderError};
use crate::adapters::permissions::Permission;
use crate::adapters::repository;

/// The program's own flag. An operator who trusts the folder adds it.
pub(super) const FLAG: &str = "--skip-trust";

pub(super) fn is_trusted(order: &Order) -> bool {
    order.args.iter().any(|arg| arg == FLAG)
}

/// The variable that decides.
pub(crate) fn variable(order: &Order) -> (String, String) {
    ("GEMINI_CLI_TRUST_WORKSPACE".to_owned(), is_trusted(order).to_string())
}

/// Refuses a folder whose variables would become the program's, where not everything is allowed.
pub(super) fn refuse_variables(order: &Order) -> Result<(), OrderError> {
    if is_trusted(order) || order.permissions.default == Permission::Allow {
        return Ok(());
    }
    match variables(&order.cwd) {
        None => Ok(()),
        Some(file) => Err(OrderError::Unsupported(format!(
            "gemini would take the variables in {} for its own, which an untrusted author may have written: remove the file, set the \
             default permission to ask, or add {FLAG} to `args` if you trust this folder",
            file.display()
        ))),
    }
}

/// That they do become the program's, where everything is allowed.
pub(super) fn caution(order: &Order) -> Option<String> {
    if is_trusted(order) || order.permissions.default != Permission::Allow {
        return None;
    }
    let file = variables(&order.cwd)?;
    Some(format!(
        "gemini takes the variables in {} for its own: remove the file if you do not trust who has written it",
        file.display()
    ))
}

/// The file with variables that the program finds in the repository.
fn variables(cwd: &Path) -> Option<PathBuf> {
    let files = |folder: &Path| [folder.join(".gemini/.env"), folder.join(".env")];
    repository::folders(cwd).flat_map(files).find(|file| file.exists())
}
