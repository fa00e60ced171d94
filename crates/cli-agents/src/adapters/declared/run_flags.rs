//! Detects arguments in which a prompt would be run as code.
//!
//! A prompt on standard input or behind `--` is no option, so only two cases are left, and what a program or a script
//! of the operator does with its input is the operator's to know: a flag that makes programs run the text after it, and
//! programs that give their arguments to a shell or an interpreter of their own wherever these stand.

use std::path::Path;

/// Flags whose value is code, in most interpreters and database clients, or becomes arguments (`env`).
const RUN_FLAGS: [&str; 4] = ["--command", "--eval", "--exec", "--split-string"];

/// The last letter of short flags of that kind: `-c`, `-e`, also behind other flags: `-lc`, `-ne`.
const RUN_LETTERS: [char; 3] = ['c', 'e', 'E'];

/// Longer words with one dash are names: `-message`.
const LONGEST_SHORT_FLAGS: usize = 3;

/// Programs that run their arguments as a text, also behind `--`.
const ARGUMENT_RUNNERS: [&str; 9] = ["awk", "gawk", "mawk", "parallel", "runuser", "script", "ssh", "su", "watch"];

/// Whether a prompt that is the next argument after these words would be run; `before` is the text before it in the same
/// argument.
pub(crate) fn run_prompt(words: &[&str], before: &str) -> bool {
    let runs_arguments = |word: &&str| {
        let name = Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        ARGUMENT_RUNNERS.contains(&name)
    };
    let flag = before.split_once('=').map_or("", |(flag, _)| flag);
    let previous = words.iter().rfind(|word| **word != "--").copied().unwrap_or_default();
    is_run_flag(flag) || is_run_flag(previous) || words.iter().any(runs_arguments)
}

fn is_run_flag(word: &str) -> bool {
    let short = word.strip_prefix('-').filter(|short| short.len() <= LONGEST_SHORT_FLAGS && !short.starts_with('-'));
    RUN_FLAGS.contains(&word) || short.is_some_and(|short| short.ends_with(RUN_LETTERS))
}
