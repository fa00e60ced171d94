//! The folders of the repository that an agent works in. Their files may come from an untrusted author; the folders
//! above belong to the operator.

use std::path::Path;

/// From the working directory up to the root of its repository; only the directory where there is none.
pub(crate) fn folders(cwd: &Path) -> impl Iterator<Item = &Path> {
    let root = cwd.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(cwd);
    cwd.ancestors().take_while(move |folder| folder.starts_with(root))
}
