//! The question whether to merge: what would be merged into which branch, in words and as data, and what is in the way.
//!
//! A program has written the diff, and names in it, so all of it is sanitized, and no line of it looks like one of the
//! question's. It is the difference to where the branch is now, which may be more than the task itself has changed.

use serde::Serialize;
use switchboard_a2a::{Json, Message, Part, Role};

use super::obstacle::{Obstacle, list};
use super::plan::Plan;
use super::{PendingMerge, short};
use crate::approvals::{framed, sanitize};
use crate::git::{Git, GitError, GitTarget, IsolatedGitDir};
use crate::worktree::{Collecting, Patch};

/// So many files have a line of their own above the diff.
const STAT: [&str; 2] = ["--stat=100", "--stat-count=50"];

/// What a reviewer is shown.
pub(super) struct Preview {
    pub(super) plan: Plan,
    stat: String,
    patch: Patch,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MergeData<'a> {
    branch: &'a str,
    into: &'a str,
    commit: &'a str,
    is_fast_forward: bool,
    conflicts: &'a [String],
    /// The diff of the question leaves out files.
    is_cut: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    left_out: &'a [String],
}

impl Preview {
    pub(super) async fn of(
        git: &Git,
        isolated: &IsolatedGitDir,
        (into, work): (&str, &str),
        limit: usize,
    ) -> Result<Self, GitError> {
        let at = GitTarget::Isolated(isolated);
        let (plan, base) = Plan::of(git, isolated, into, work).await?;
        let range = [base.as_deref().unwrap_or(into), work];
        let differences =
            ["diff-tree", "-r", "-M", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short"];
        let mut patch = Collecting::new(limit);
        let whole = [&differences[..], &["-p"], &range].concat();
        let counted = [&differences[..], &STAT, &range].concat();
        let (printed, stat) = tokio::join!(git.read(at, &whole, |bytes| patch.take(bytes)), git.run(at, &counted));
        printed?;
        Ok(Self { plan, stat: stat?, patch: patch.finish() })
    }
}

/// The question. Without a preview it says only what is in the way.
pub(super) fn question(
    pending: &PendingMerge,
    preview: Option<&Preview>,
    obstacle: Option<&Obstacle>,
    limit: usize,
) -> Message {
    let (branch, into) = (&pending.branch, short(&pending.target));
    let mut text = match obstacle {
        Some(obstacle) => format!("Not merged: {}.\n", framed(&sanitize(&obstacle.to_string()))),
        None => String::new(),
    };
    text.push_str(&format!("Merge {} into {}?", sanitize(branch), sanitize(into)));
    let Some(preview) = preview else {
        text.push_str("\nReject leaves the work on its branch.");
        return Message::text(Role::Agent, text);
    };
    text.push_str(match &preview.plan {
        Plan::Conflicts(_) => " As it is, it conflicts.",
        Plan::FastForward => " It is a fast-forward.",
        Plan::Merge { .. } | Plan::Merged => " It takes a merge commit.",
    });
    let stat: Vec<&str> = preview.stat.lines().map(str::trim).collect();
    text.push_str(&format!("\n  | {}", framed(&sanitize(&stat.join("\n")))));
    let Patch { bytes, left_out, left_out_count } = &preview.patch;
    if *left_out_count > 0 {
        text.push_str(&format!(
            "\nThis is not all of it: the diff leaves out {left_out_count} files, for which it has no room (limits.mergeDiff, \
             {limit} bytes): {}",
            framed(&sanitize(&list(left_out)))
        ));
    }
    text.push_str(&format!("\n  | {}", framed(&sanitize(String::from_utf8_lossy(bytes).trim_end()))));
    text.push_str(
        "\nApprove merges it; reject leaves it on its branch. Say anything else and the program goes on with that, and asks \
         again.",
    );
    let conflicts = match &preview.plan {
        Plan::Conflicts(files) => files,
        _ => obstacle.map(Obstacle::conflicts).unwrap_or_default(),
    };
    let data = MergeData {
        branch,
        into,
        commit: &pending.tip,
        is_fast_forward: preview.plan == Plan::FastForward,
        conflicts,
        is_cut: *left_out_count > 0,
        left_out,
    };
    let mut message = Message::text(Role::Agent, text);
    message.parts.extend(Json::from_serialize(&serde_json::json!({ "merge": data })).map(Part::data));
    message
}
