//! The project's instructions for agents: its `CLAUDE.md`, and all files of rules below `.claude`.
//!
//! The program adds them to the model's input without approval. A link among them may lead to any file of
//! the user, so that they are read only if all of them lie in the project. What they import with `@` from elsewhere the
//! program leaves out by itself.

use std::path::{Path, PathBuf};

/// Where the program looks.
const PLACES: [&str; 4] = ["CLAUDE.md", ".claude", ".claude/CLAUDE.md", ".claude/rules"];

/// The folder of which all files are read, also those in folders below it.
const RULES: &str = ".claude/rules";

/// A project with more rules than this is not searched to its end.
const MOST_FILES: usize = 10_000;

/// Whether all of it lies in the project.
pub(super) fn are_inside(cwd: &Path) -> bool {
    let Ok(project) = cwd.canonicalize() else {
        // There is none.
        return true;
    };
    // What is missing is not read.
    let inside = |place: &&str| project.join(place).canonicalize().map_or(true, |place| place.starts_with(&project));
    PLACES.iter().all(inside) && rules_are_inside(&project)
}

fn rules_are_inside(project: &Path) -> bool {
    let Ok(rules) = project.join(RULES).canonicalize() else { return true };
    let (mut folders, mut seen): (Vec<PathBuf>, Vec<PathBuf>) = (vec![rules], Vec::new());
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        // Links may lead in a circle.
        if seen.contains(&folder) {
            continue;
        }
        let Ok(entries) = folder.read_dir() else { return false };
        for entry in entries {
            files += 1;
            let Ok(entry) = entry else { return false };
            // A link that leads nowhere is not read.
            let Ok(place) = entry.path().canonicalize() else { continue };
            if files > MOST_FILES || !place.starts_with(project) {
                return false;
            }
            if place.is_dir() {
                folders.push(place);
            }
        }
        seen.push(folder);
    }
    true
}
