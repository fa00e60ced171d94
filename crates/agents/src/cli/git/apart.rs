//! Git at the files of a copy with settings of our own: a folder like `.git` beside the copy, which has the repository's
//! objects and nothing of what it, the account or the copy would have git run. Filters do not run, in neither direction.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{At, Git, GitError};

/// Settings of a repository that only say what files look like.
const HARMLESS: &str = r"^core\.(autocrlf|eol|filemode|symlinks|ignorecase|excludesfile)$";
/// Files of a repository with rules about names.
const RULES: [&str; 2] = ["info/exclude", "info/attributes"];

/// Whose commits these are.
const WHO: &str = "Switchboard";
const ADDRESS: &str = "switchboard@localhost";

/// A folder like `.git`, and the files it is used for.
pub(in crate::cli) struct Apart {
    dir: PathBuf,
    pub(super) files: PathBuf,
    objects: PathBuf,
    pub(super) settings: Vec<OsString>,
}

impl Apart {
    pub(super) fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("GIT_DIR", self.dir.clone().into()),
            ("GIT_WORK_TREE", self.files.clone().into()),
            ("GIT_OBJECT_DIRECTORY", self.objects.clone().into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            // What names the objects could otherwise be named anew by the repository.
            ("GIT_NO_REPLACE_OBJECTS", "1".into()),
            ("GIT_AUTHOR_NAME", WHO.into()),
            ("GIT_AUTHOR_EMAIL", ADDRESS.into()),
            ("GIT_COMMITTER_NAME", WHO.into()),
            ("GIT_COMMITTER_EMAIL", ADDRESS.into()),
        ]
    }

    /// Where it keeps what is to be committed.
    pub(in crate::cli) fn index(&self) -> PathBuf {
        self.dir.join("index")
    }
}

impl Git {
    /// Makes ready to work on the files of a copy, with a folder that is made for it.
    pub(in crate::cli) async fn apart(
        &self,
        dir: &Path,
        files: &Path,
        repository: &Path,
        object_format: &str,
    ) -> Result<Apart, GitError> {
        self.remove_folder(dir).await;
        let objects = repository.join("objects");
        let mut apart = Apart { dir: dir.to_owned(), files: files.to_owned(), objects, settings: Vec::new() };
        let format = format!("--object-format={object_format}");
        let made = ["init", "--quiet", "--template=", format.as_str()];
        self.run(At::Apart(&apart), &made).await?;
        for rules in RULES {
            self.copy_file(&repository.join(rules), &dir.join(rules)).await;
        }
        // It has none of them, which is no error.
        let found = self.run(At::Repository(repository), &["config", "--null", "--get-regexp", HARMLESS]).await;
        apart.settings = found.map(|found| settings(&found.bytes)).unwrap_or_default();
        Ok(apart)
    }
}

/// Settings as `git config --null` prints them: the name, a new line, the value.
fn settings(printed: &[u8]) -> Vec<OsString> {
    let printed = String::from_utf8_lossy(printed);
    let pairs = printed.split('\0').filter_map(|pair| pair.split_once('\n'));
    pairs.map(|(name, value)| format!("{name}={value}").into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_a_value_are_left_out() {
        assert_eq!(
            settings(b"core.eol\nlf\0core.symlinks\0core.autocrlf\na=b\0"),
            ["core.eol=lf", "core.autocrlf=a=b"]
        );
        assert!(settings(b"").is_empty());
    }
}
