//! `switchboard task download`: saves the files of a task. Their names come from the agent, so only the last part of a
//! name counts, nothing is written outside the folder, and nothing is overwritten unless that is wanted.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use switchboard_a2a::{Part, PartContent, Task, TaskId};

use crate::commands::calling::task_output::TaskPrinter;
use crate::commands::calling::{AgentCall, Failure, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DownloadOptions {
    /// Folder to write to; it is made if it is not there. What the agent only names by its URL is not fetched
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,

    /// Overwrite files that are there
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(call: AgentCall<'_>, [id]: [String; 1], options: DownloadOptions) -> Result<(), Failure> {
    let printer = call.printer;
    let task = call.ask(call.client.get(&call.context, &TaskId::from(id), Some(0))).await?;
    let saved = save(&task, &options)?;
    let elsewhere = urls(&task);
    if printer.is_json() {
        printer.json(&json!({ "saved": saved, "elsewhere": elsewhere }));
        return Ok(());
    }
    let output = TaskPrinter { printer, is_verbose: false };
    for path in &saved {
        output.field("saved", &path.display().to_string());
    }
    for url in &elsewhere {
        output.field("not fetched", url);
    }
    output.ids(&task);
    if saved.is_empty() && elsewhere.is_empty() {
        printer.warning("the task has produced no files");
    }
    Ok(())
}

fn parts(task: &Task) -> impl Iterator<Item = &Part> {
    task.artifacts.iter().flat_map(|artifact| &artifact.parts)
}

fn urls(task: &Task) -> Vec<String> {
    let url = |part: &Part| match &part.content {
        PartContent::Url(url) => Some(url.clone()),
        _ => None,
    };
    parts(task).filter_map(url).collect()
}

fn save(task: &Task, options: &DownloadOptions) -> Result<Vec<PathBuf>, Failure> {
    let mut saved = Vec::new();
    let mut names = BTreeSet::new();
    for part in parts(task) {
        let PartContent::Raw(bytes) = &part.content else { continue };
        if saved.is_empty() {
            let made = std::fs::create_dir_all(&options.out);
            made.map_err(|error| failed(&options.out, &error, "name another folder with --out"))?;
        }
        let path = options.out.join(unique(name(part), &mut names));
        write(&path, bytes, options.force)?;
        saved.push(path);
    }
    Ok(saved)
}

/// The last part of the name that the agent gives, without what file systems or terminals would take for something else.
fn name(part: &Part) -> String {
    let given = part.filename.as_deref().unwrap_or_default();
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept = sanitize::line(last).replace([':', '\0'], "_");
    // Neither a folder, nor hidden, nor an option of whatever is typed next.
    let kept = kept.trim_start_matches(['.', '-', '~', ' ']);
    // Most file systems take 255 bytes at most, and a number may be added.
    let end = (0..=kept.len().min(200)).rev().find(|end| kept.is_char_boundary(*end)).unwrap_or(0);
    if end == 0 { "file".to_owned() } else { kept[..end].to_owned() }
}

/// Two files of a task may have the same name.
fn unique(name: String, names: &mut BTreeSet<String>) -> String {
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) => (stem.to_owned(), format!(".{ending}")),
        None => (name.clone(), String::new()),
    };
    let mut found = name;
    let mut number = 1;
    while !names.insert(found.clone()) {
        number += 1;
        found = format!("{stem}-{number}{ending}");
    }
    found
}

fn write(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    if force {
        // What is there may be a link to somewhere else.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(path, &error, "")),
            _ => {}
        }
    }
    let written = std::fs::File::create_new(path).and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let message = format!("{} is there already", path.display());
            Failure::internal(message).with_hint("name another folder with --out, or overwrite it with --force")
        }
        _ => failed(path, &error, ""),
    })
}

fn failed(path: &Path, error: &std::io::Error, next: &str) -> Failure {
    Failure::internal(format!("{} cannot be written: {error}", path.display())).with_hint(next)
}
