//! Detects arguments in which a prompt would be run as code.
//!
//! A flag that makes programs run the text after it is refused for every program. Shells and interpreters have more
//! such flags, in clusters and before other options, so they are known by name, as are the programs that start them.
//! What a program does with its input, and a script with its arguments, is the operator's to know.

use std::path::Path;

/// Flags whose value is code, in most interpreters and database clients, or becomes arguments (`env`).
const RUN_FLAGS: [&str; 4] = ["--command", "--eval", "--exec", "--split-string"];

/// The last letter of short flags of that kind: `-c`, `-e`, also behind other flags: `-lc`, `-ne`.
const RUN_LETTERS: [char; 3] = ['c', 'e', 'E'];

/// Longer words with one dash are names: `-message`.
const LONGEST_SHORT_FLAGS: usize = 3;

/// Interpreters, with the letters of the short flags that run a text, and of those with another value in the next word.
const INTERPRETERS: [(&str, &str, &str); 7] = [
    ("ash bash csh dash fish ksh mksh sh tcsh zsh", "cC", "oO"),
    ("nu powershell pwsh", "cCeE", ""),
    ("pypy python", "c", "WX"),
    ("bun deno node nodejs", "ep", "rC"),
    ("perl ruby", "eE", "CIr"),
    ("php", "rRBE", "cdz"),
    ("Rscript julia lua luajit osascript tclsh", "ceE", "l"),
];

/// The beginnings of their long flags that run a text.
const RUN_WORDS: [&str; 7] = ["command", "eval", "exec", "init-command", "print", "process-", "run"];

/// Their long flags with another value in the next word.
const VALUE_FLAGS: [&str; 5] = ["--import", "--init-file", "--loader", "--rcfile", "--require"];

/// Programs that run their arguments as a text, wherever these stand.
const ARGUMENT_RUNNERS: &str = "awk gawk mawk nawk parallel runuser script ssh su watch";

/// Programs that start the program that their arguments name. Any of their arguments may be it.
const WRAPPERS: &str = "\
    bwrap busybox caffeinate chroot chrt dbus-run-session docker doas env firejail flock gosu ionice kubectl nice nohup \
    npx nsenter podman prlimit setpriv setsid stdbuf strace sudo systemd-run taskset time timeout unshare uv xargs";

/// Whether a program would run a prompt that is the next argument after these words; `before` is the text before it in
/// the same argument.
pub(crate) fn run_prompt(program: &str, words: &[String], before: &str) -> bool {
    let mut words: Vec<&str> = std::iter::once(program).chain(words.iter().map(String::as_str)).collect();
    let is_wrapper = lists(WRAPPERS, file_name(program));
    let is_split = is_wrapper && words.last().is_some_and(|last| is_split_flag(last));
    if is_wrapper {
        words = split(&words);
    }
    if words.iter().any(|word| file_name(word) == "env") && holds_split_text(before) {
        return true;
    }
    let flag = before.split_once('=').map_or("", |(flag, _)| flag);
    let previous = words.iter().rfind(|word| **word != "--").copied().unwrap_or_default();
    if is_split || is_run_flag(flag) || is_run_flag(previous) {
        return true;
    }
    words.extend(before.split('=').next().filter(|option| option.starts_with('-')));
    let programs = if is_wrapper { words.len() } else { 1 };
    (0..programs).find_map(|at| runs_next(&words[at..])).unwrap_or(false)
}

fn is_run_flag(word: &str) -> bool {
    let short = word.strip_prefix('-').filter(|short| short.len() <= LONGEST_SHORT_FLAGS && !short.starts_with('-'));
    RUN_FLAGS.contains(&word) || short.is_some_and(|short| short.ends_with(RUN_LETTERS))
}

/// Whether the first of these words is a program that runs what follows the last of them. An interpreter runs the text
/// after its run flag, or a file; once either is there, the prompt is an argument of it. `None` if the first may be no
/// program: `sudo -u node …`.
fn runs_next(words: &[&str]) -> Option<bool> {
    let (program, words) = words.split_first()?;
    let name = file_name(program);
    let plain = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-'));
    let interpreter = INTERPRETERS.iter().find(|(names, ..)| lists(names, plain));
    let Some((_, run_letters, value_letters)) = interpreter else {
        return lists(ARGUMENT_RUNNERS, name).then_some(true);
    };
    let (mut has_code, mut runs, mut has_value) = (false, false, false);
    for word in words {
        let is_value = std::mem::take(&mut has_value);
        match (word.strip_prefix("--"), word.strip_prefix(['-', '+'])) {
            (Some(long), _) => {
                let is_run = RUN_WORDS.iter().any(|run| long.starts_with(run));
                has_code |= is_run && long.contains('=');
                runs |= is_run && !long.contains('=');
                has_value = VALUE_FLAGS.contains(word);
            }
            (None, Some(short)) => {
                runs |= short.contains(|letter| run_letters.contains(letter));
                has_value = short.ends_with(|letter| value_letters.contains(letter));
            }
            (None, None) if *word == "eval" => runs = true,
            (None, None) if is_value => {}
            // More texts may follow the first: `perl -e … -e …`.
            (None, None) if runs => (has_code, runs) = (true, false),
            (None, None) => return has_code.then_some(false),
        }
    }
    Some(runs || !has_code)
}

/// The words after the options that `env` splits into words: `-S "bash -c"`, `--split-string=bash -c`.
fn split<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let mut pieces = Vec::new();
    let mut is_text = false;
    for word in words {
        match word.starts_with('-') {
            true => pieces.extend(word.split([' ', '=', 'S']).filter(|piece| !piece.is_empty())),
            false if is_text => pieces.extend(word.split_whitespace()),
            false => pieces.push(*word),
        }
        is_text = is_split_flag(word);
    }
    pieces
}

/// Long flags may be abbreviated: `--split`.
fn is_split_flag(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => !long.is_empty() && "split-string".starts_with(long),
        None => word.starts_with('-') && word.ends_with('S'),
    }
}

/// Whether the text before a prompt in its own argument is split by `env`, and the prompt with it: `-S A=1 bash -c `.
fn holds_split_text(before: &str) -> bool {
    let flag = before.split([' ', '=']).next().unwrap_or_default();
    is_split_flag(flag) || (flag.starts_with('-') && !flag.starts_with("--") && flag.contains('S'))
}

fn lists(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|listed| listed == name)
}

/// A program's name without its folder; of `NAME=value`, which is no program, nothing.
fn file_name(program: &str) -> &str {
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    name.filter(|_| !program.contains('=')).unwrap_or_default()
}
