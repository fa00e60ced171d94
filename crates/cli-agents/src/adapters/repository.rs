//! The folders of the repository that an agent works in. What lies in them may be anybody's; what lies above is the
//! operator's.

use std::path::Path;

/// From the working directory up to the root of its repository; only the directory where there is none.
pub(crate) fn folders(cwd: &Path) -> impl Iterator<Item = &Path> {
    let root = cwd.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(cwd);
    cwd.ancestors().take_while(move |folder| folder.starts_with(root))
}
