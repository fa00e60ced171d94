//! Links and paths in the documentation: every relative link in a Markdown file of the repository leads to a file that
//! exists, and to a heading of it; every source path that the documents for developers name exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders with documentation, below the root of the repository; the root itself is read without its subfolders.
const FOLDERS: [&str; 5] = ["docs", "docs/cli-agents", "docs/decisions", "interop", "."];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn markdown_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files
}

/// The lines of a page that are not inside a fenced block.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

/// The anchors that a renderer makes of the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    headings.map(|heading| anchor(heading.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|character| character.is_alphanumeric() || " -_".contains(*character));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = prose(page).flat_map(|line| line.split("](").skip(1));
    let targets = targets.filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let mut count = 0;
    let mut broken = Vec::new();
    for file in markdown_files() {
        let page = std::fs::read_to_string(&file).unwrap();
        for link in links(&page) {
            let (path, wanted) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { file.clone() } else { file.with_file_name("").join(path) };
            let is_markdown = target.extension().is_some_and(|extension| extension == "md");
            let leads = match wanted {
                "" => target.exists(),
                _ => is_markdown && std::fs::read_to_string(&target).is_ok_and(|page| anchors(&page).contains(wanted)),
            };
            if !leads {
                broken.push(format!("{}: {link}", file.display()));
            }
            count += 1;
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
    assert!(count > 60, "only {count} links were found");
}

/// The source paths that a page names in backquotes.
fn source_paths(page: &str) -> impl Iterator<Item = &str> {
    let quoted = prose(page).flat_map(|line| line.split('`').skip(1).step_by(2));
    let has_source_name = |path: &str| [".rs", ".sql", ".md", ".json"].iter().any(|end| path.ends_with(end));
    quoted.filter(move |text| {
        let is_source = has_source_name(text) || text.contains("/src") || text.contains("/tests");
        text.contains('/') && is_source && !text.contains(['*', '<', ' '])
    })
}

#[test]
fn every_source_path_in_the_documents_for_developers_exists() {
    let decisions =
        markdown_files().into_iter().filter(|file| file.parent().is_some_and(|at| at.ends_with("decisions")));
    let documents = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/glossary.md"].map(|name| root().join(name));
    let mut count = 0;
    let mut missing = Vec::new();
    for file in documents.into_iter().chain(decisions) {
        let page = std::fs::read_to_string(&file).unwrap();
        for path in source_paths(&page) {
            if !root().join("crates").join(path).exists() && !root().join(path).exists() {
                missing.push(format!("{}: {path}", file.display()));
            }
            count += 1;
        }
    }
    assert!(missing.is_empty(), "paths that do not exist:\n{}", missing.join("\n"));
    assert!(count > 50, "only {count} paths were found");
}
