//! Where a turn works: the agent's folder, or a repository that the request chose within the allowed ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard_engine::{Stopped, TaskHandle};

use super::locks::{Locks, Place};
use super::process::Remains;
use super::settings::Settings;
use super::worktree::Worktree;

/// A folder that a turn works in: a copy, or the folder itself with a place in the line for it.
pub(super) struct Workspace {
    /// The folder; absolute.
    pub(super) folder: PathBuf,
    pub(super) worktree: Option<Worktree>,
    place: Option<Place<PathBuf>>,
}

/// A folder that cannot be worked in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WorkspaceError {
    /// The request may not choose at all.
    #[error("metadata.repo: this agent does not let requests choose a repository; leave it out")]
    NoChoice,
    /// What it chose is outside, or not there: which of the two is not for the caller to know.
    #[error("metadata.repo: {0:?} is not a folder within those that this agent may work in")]
    NotAllowed(String),
    /// The agent's own folder is missing.
    #[error("the folder of this agent cannot be worked in: {0}")]
    Missing(String),
    /// While the task waited, somebody has put something else in its place.
    #[error("the folder to work in was moved while the task waited: send the message again")]
    Moved,
}

/// The folder for a turn: canonical, and within the allowed ones if the request chose it.
pub(super) fn choose(settings: &Settings, repo: Option<&str>) -> Result<PathBuf, WorkspaceError> {
    let Some(repo) = repo else {
        let shown = settings.cwd.display();
        let folder = settings.cwd.canonicalize();
        let folder = folder.map_err(|error| WorkspaceError::Missing(format!("{shown}: {error}")))?;
        let is_folder = folder.is_dir();
        return is_folder.then_some(folder).ok_or_else(|| WorkspaceError::Missing(format!("{shown} is not a folder")));
    };
    if settings.repos.is_empty() {
        return Err(WorkspaceError::NoChoice);
    }
    let roots: Vec<PathBuf> = settings.repos.iter().filter_map(|root| root.canonicalize().ok()).collect();
    let within = |folder: &Path| roots.iter().any(|root| folder.starts_with(root));
    let candidates = roots.iter().map(|root| root.join(repo));
    let found =
        candidates.filter_map(|folder| folder.canonicalize().ok()).find(|folder| within(folder) && folder.is_dir());
    found.ok_or_else(|| WorkspaceError::NotAllowed(repo.to_owned()))
}

/// Whether a folder that was chosen now leads to another place: a link may have been put there while the task waited.
pub(super) fn is_elsewhere(folder: &Path) -> bool {
    folder.canonicalize().ok().as_deref() != Some(folder)
}

/// The repository a folder belongs to; the folder itself if it is in none.
fn repository(folder: &Path) -> &Path {
    // A file in copies and submodules. An empty folder of that name is no repository; some programs leave such.
    let is_top = |folder: &&Path| folder.join(".git").is_file() || folder.join(".git/HEAD").exists();
    folder.ancestors().find(is_top).unwrap_or(folder)
}

impl Workspace {
    /// A place in the line for the folder of a turn that goes on, which is to be the first there.
    pub(super) fn line_up(
        settings: &Settings,
        repositories: &Arc<Locks<PathBuf>>,
        folder: &Path,
    ) -> Option<Place<PathBuf>> {
        settings.repo_lock.then(|| repositories.line_up(repository(folder).to_owned()))
    }

    /// Waits for the folder, in the place that was `kept` for it if there is one, until nobody else works in its
    /// repository, and says so meanwhile. Nothing if the task is to stop before that.
    pub(super) async fn open(
        settings: &Settings,
        repositories: &Arc<Locks<PathBuf>>,
        folder: PathBuf,
        kept: Option<Place<PathBuf>>,
        task: &TaskHandle,
    ) -> Result<Self, Stopped> {
        if !settings.repo_lock {
            return Ok(Self { folder, worktree: None, place: None });
        }
        let kept = kept.filter(|place| place.is_for(repository(&folder)));
        let mut place = kept.unwrap_or_else(|| repositories.line_up(repository(&folder).to_owned()));
        if !place.is_held() {
            let ahead = place.ahead;
            task.status(format!("Waiting: another task works in this repository ({ahead} ahead).")).await?;
            task.step_aside(place.wait()).await?;
        }
        Ok(Self { folder, worktree: None, place: Some(place) })
    }

    /// A copy needs no place in a line.
    pub(super) fn copied(worktree: Worktree) -> Self {
        Self { folder: worktree.folder.clone(), worktree: Some(worktree), place: None }
    }

    /// A child works here from now on: nobody else does until nothing of it is left.
    pub(super) fn keep_for(&mut self, remains: Remains) {
        if let Some(place) = &mut self.place {
            place.keep_for(remains.clone());
        }
        if let Some(place) = self.worktree.as_mut().and_then(|worktree| worktree.place.as_mut()) {
            place.keep_for(remains);
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_adapters::{About, Adapter, Binary, Capabilities, Dialogue, Launch, Order, OrderError};

    use super::*;
    use crate::cli::settings::Worker;

    struct Nobody(About);

    impl Adapter for Nobody {
        fn about(&self) -> &About {
            &self.0
        }

        fn start(&self, _: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
            Err(OrderError::NoPrompt)
        }
    }

    fn settings(cwd: &Path, repos: &[&Path]) -> Settings {
        let binary = Binary {
            names: Vec::new(),
            version_args: Vec::new(),
            tested: Vec::new(),
            install: String::new(),
            login: String::new(),
            login_signs: Vec::new(),
            refuses_root: false,
        };
        let about = About {
            name: "nobody".to_owned(),
            title: "Nobody".to_owned(),
            binary,
            capabilities: Capabilities::default(),
            variables: Vec::new(),
        };
        let repos = repos.iter().map(|repo| repo.to_path_buf()).collect();
        Settings { repos, ..Settings::new("a", Worker::new(Nobody(about)), cwd) }
    }

    #[test]
    fn a_request_stays_within_the_allowed_folders_whatever_it_writes() {
        let outside = tempfile::tempdir().unwrap();
        let root = tempfile::tempdir().unwrap();
        let repo = root.path().join("app/src");
        std::fs::create_dir_all(&repo).unwrap();
        std::fs::write(root.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("link")).unwrap();
        std::os::unix::fs::symlink("app", root.path().join("same")).unwrap();
        let settings = settings(root.path(), &[root.path()]);
        let real = root.path().canonicalize().unwrap();
        assert_eq!(choose(&settings, None).unwrap(), real);
        assert_eq!(choose(&settings, Some("app")).unwrap(), real.join("app"));
        assert_eq!(choose(&settings, Some("same/src")).unwrap(), real.join("app/src"));
        assert_eq!(choose(&settings, Some(repo.to_str().unwrap())).unwrap(), real.join("app/src"));
        let beside = format!("{}-beside", root.path().display());
        std::fs::create_dir(&beside).unwrap();
        for refused in ["link", "..", "app/../..", "/", "/etc", "missing", "file", "app\0", &beside] {
            assert_eq!(choose(&settings, Some(refused)), Err(WorkspaceError::NotAllowed(refused.to_owned())));
        }
        std::fs::remove_dir(&beside).unwrap();
    }

    #[test]
    fn a_folder_that_was_replaced_by_a_link_is_elsewhere() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let folder = root.join("app");
        std::fs::create_dir(&folder).unwrap();
        assert!(!is_elsewhere(&folder));
        std::fs::remove_dir(&folder).unwrap();
        assert!(is_elsewhere(&folder));
        std::os::unix::fs::symlink("/etc", &folder).unwrap();
        assert!(is_elsewhere(&folder));
    }

    #[test]
    fn without_allowed_folders_there_is_no_choice_and_a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("gone");
        assert_eq!(choose(&settings(folder.path(), &[]), Some(".")), Err(WorkspaceError::NoChoice));
        let error = choose(&settings(&missing, &[]), None).unwrap_err();
        assert!(error.to_string().contains("gone: No such file"), "{error}");
    }

    #[test]
    fn folders_of_one_repository_share_it() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["app/.git", "app/a/b", "plain/.git", "plain/x", "copy/x"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        std::fs::write(root.path().join("app/.git/HEAD"), "").unwrap();
        std::fs::write(root.path().join("copy/.git"), "").unwrap();
        assert_eq!(repository(&root.path().join("app/a/b")), root.path().join("app"));
        assert_eq!(repository(&root.path().join("copy/x")), root.path().join("copy"));
        assert_eq!(repository(&root.path().join("plain/x")), root.path().join("plain/x"));
    }
}
