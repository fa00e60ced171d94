//! What merging would come to, worked out in the repository's objects alone: no file, index or branch is touched, and no
//! merge driver of the repository is run.

use crate::git::{Git, GitError, GitTarget, IsolatedGitDir};

use super::obstacle::Obstacle;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// The branch has the work already.
    Merged,
    /// The branch has nothing that the work has not.
    FastForward,
    /// Both have something of their own, which fits: this tree.
    Merge { tree: String },
    /// It does not fit in these files.
    Conflicts(Vec<String>),
}

impl Plan {
    /// How the work gets into a branch that stands at `into`. `base` is the commit that both come from.
    pub(super) async fn of(
        git: &Git,
        isolated: &IsolatedGitDir,
        into: &str,
        work: &str,
    ) -> Result<(Self, Option<String>), GitError> {
        let at = GitTarget::Isolated(isolated);
        let base = git.word(at, &["merge-base", into, work]).await.ok();
        let plan = match base.as_deref() {
            Some(base) if base == work => Self::Merged,
            Some(base) if base == into => Self::FastForward,
            _ => merge(git, at, into, work).await?,
        };
        Ok((plan, base))
    }

    /// The commit that the branch is to stand at.
    pub(super) async fn commit(
        self,
        git: &Git,
        isolated: &IsolatedGitDir,
        (into, work): (&str, &str),
        message: &str,
    ) -> Result<Option<String>, Obstacle> {
        match self {
            Self::Merged => Ok(None),
            Self::FastForward => Ok(Some(work.to_owned())),
            Self::Conflicts(files) => Err(Obstacle::Conflicts(files)),
            Self::Merge { tree } => {
                let args = ["commit-tree", &tree, "-p", into, "-p", work, "-m", message];
                Ok(Some(git.word(GitTarget::Isolated(isolated), &args).await?))
            }
        }
    }
}

async fn merge(git: &Git, at: GitTarget<'_>, into: &str, work: &str) -> Result<Plan, GitError> {
    let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", into, work];
    let mut printed = Vec::new();
    let merged = git
        .read(at, &args, |bytes| {
            let room = git.limit.saturating_sub(printed.len());
            printed.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        })
        .await;
    let mut words = printed.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).trim().to_owned());
    let tree = words.next().filter(|tree| !tree.is_empty());
    let files: Vec<String> = words.take_while(|word| !word.is_empty()).collect();
    match (merged, tree) {
        (Ok(()), Some(tree)) => Ok(Plan::Merge { tree }),
        // It says what conflicts, and fails.
        (Err(_), Some(_)) if !files.is_empty() => Ok(Plan::Conflicts(files)),
        (Err(error), _) => Err(error),
        (Ok(()), None) => Err(GitError { command: "merge-tree".to_owned(), problem: "printed nothing".to_owned() }),
    }
}
