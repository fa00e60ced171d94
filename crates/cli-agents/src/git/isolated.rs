//! An isolated git directory for the files of a worktree: it shares the repository's objects and none of the settings
//! by which the repository, the account or the worktree would have git run programs. Filters do not run in either
//! direction.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::{Git, GitError, GitTarget};

/// Settings of a repository that only say what files look like.
const HARMLESS: &str = r"^core\.(autocrlf|eol|filemode|symlinks|ignorecase|excludesfile)$";
/// Files of a repository with rules about names.
const RULES: [&str; 2] = ["info/exclude", "info/attributes"];

/// Whose commits these are.
const COMMITTER_NAME: &str = "Switchboard";
const COMMITTER_EMAIL: &str = "switchboard@localhost";

/// A folder like `.git`, and the files it is used for.
pub(crate) struct IsolatedGitDir {
    dir: PathBuf,
    pub(super) files: PathBuf,
    objects: PathBuf,
    pub(super) settings: Vec<OsString>,
}

impl IsolatedGitDir {
    pub(super) fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("GIT_DIR", self.dir.clone().into()),
            ("GIT_WORK_TREE", self.files.clone().into()),
            ("GIT_OBJECT_DIRECTORY", self.objects.clone().into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            // What names the objects could otherwise be named anew by the repository.
            ("GIT_NO_REPLACE_OBJECTS", "1".into()),
            ("GIT_AUTHOR_NAME", COMMITTER_NAME.into()),
            ("GIT_AUTHOR_EMAIL", COMMITTER_EMAIL.into()),
            ("GIT_COMMITTER_NAME", COMMITTER_NAME.into()),
            ("GIT_COMMITTER_EMAIL", COMMITTER_EMAIL.into()),
        ]
    }

    /// Where it keeps what is to be committed.
    pub(crate) fn index(&self) -> PathBuf {
        self.dir.join("index")
    }
}

impl Git {
    /// Makes ready to work on the files of a worktree, with a folder that is made for it.
    pub(crate) async fn isolated(
        &self,
        dir: &Path,
        files: &Path,
        repository: &Path,
        (object_format, settings): (&str, &[String]),
    ) -> Result<IsolatedGitDir, GitError> {
        self.remove_folder(dir).await;
        let isolated = IsolatedGitDir {
            dir: dir.to_owned(),
            files: files.to_owned(),
            objects: repository.join("objects"),
            settings: settings.iter().map(OsString::from).collect(),
        };
        if self.is_other_account() {
            let format = format!("--object-format={object_format}");
            self.run(GitTarget::Isolated(&isolated), &["init", "--quiet", "--template=", &format]).await?;
        } else {
            // The same, and at once.
            let failed = |error: io::Error| GitError { command: "init".to_owned(), problem: error.to_string() };
            init(dir, object_format).map_err(failed)?;
        }
        for rules in RULES {
            self.copy_file(&repository.join(rules), &dir.join(rules)).await;
        }
        Ok(isolated)
    }

    /// Settings of a repository that count for what is done isolated from it.
    pub(crate) async fn harmless_settings(&self, repository: &Path) -> Vec<String> {
        // It may have none of them, which git calls a failure.
        let found = self.run(GitTarget::Repository(repository), &["config", "--null", "--get-regexp", HARMLESS]).await;
        found.map(|found| settings(&found)).unwrap_or_default()
    }
}

fn init(dir: &Path, object_format: &str) -> io::Result<()> {
    std::fs::create_dir_all(dir.join("refs"))?;
    std::fs::write(dir.join("HEAD"), "ref: refs/heads/main\n")?;
    let version = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n";
    std::fs::write(dir.join("config"), format!("{version}[extensions]\n\tobjectFormat = {object_format}\n"))
}

/// Settings as `git config --null` prints them: the name, a new line, the value.
fn settings(printed: &str) -> Vec<String> {
    let pairs = printed.split('\0').filter_map(|pair| pair.split_once('\n'));
    pairs.map(|(name, value)| format!("{name}={value}")).collect()
}
