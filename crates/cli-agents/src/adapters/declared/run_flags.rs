//! Detects arguments in which a prompt would be run as code.
//!
//! | words before the prompt | the prompt is | why |
//! |---|---|---|
//! | `psql --command`, `agent -c`, `agent -le` | code | a run flag is the last word, of any program |
//! | `bash -c -x`, `node -p` | code | the interpreter still expects the text of its run flag |
//! | `python -X dev` | code | no script yet: the prompt would be its name |
//! | `bash run.sh`, `sh -c 'git "$1"' x` | an argument | the script or the text is there already |
//! | `awk`, `ssh host` | code | the program runs its arguments as a text |
//! | `sudo bash -c`, `env -S "bash -c"` | code | a wrapper starts one of these |
//!
//! Shells and interpreters have more run flags than other programs, in clusters and before other options, so they are
//! known by name, as are the programs that start them. What a program does with its input, and a script with its
//! arguments, is the operator's to know.

use std::path::Path;

/// Flags whose value is code, in most interpreters and database clients, or becomes arguments (`env`).
const RUN_FLAGS: [&str; 4] = ["--command", "--eval", "--exec", "--split-string"];

/// The last letter of short flags of that kind: `-c`, `-e`, also behind other flags: `-lc`, `-ne`.
const RUN_LETTERS: [char; 3] = ['c', 'e', 'E'];

/// Longer words with one dash are names: `-message`.
const LONGEST_SHORT_FLAGS: usize = 3;

/// Programs with the same short flags.
struct Interpreter {
    /// Names of the programs, without a version at the end.
    names: &'static str,
    /// Letters of the flags that run the text after them.
    run_letters: &'static str,
    /// Letters of the flags with another value in the next word.
    value_letters: &'static str,
}

const INTERPRETERS: [Interpreter; 7] = [
    Interpreter { names: "ash bash csh dash fish ksh mksh sh tcsh zsh", run_letters: "cC", value_letters: "oO" },
    Interpreter { names: "nu powershell pwsh", run_letters: "cCeE", value_letters: "" },
    Interpreter { names: "pypy python", run_letters: "c", value_letters: "WX" },
    Interpreter { names: "bun deno node nodejs", run_letters: "ep", value_letters: "rC" },
    Interpreter { names: "perl ruby", run_letters: "eE", value_letters: "CIr" },
    Interpreter { names: "php", run_letters: "rRBE", value_letters: "cdz" },
    Interpreter { names: "Rscript julia lua luajit osascript tclsh", run_letters: "ceE", value_letters: "l" },
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
    let mut prompts = (0..programs).map(|at| prompt_after(&words[at..]));
    prompts.find(|prompt| *prompt != Prompt::Unknown) == Some(Prompt::Code)
}

fn is_run_flag(word: &str) -> bool {
    let short = word.strip_prefix('-').filter(|short| short.len() <= LONGEST_SHORT_FLAGS && !short.starts_with('-'));
    RUN_FLAGS.contains(&word) || short.is_some_and(|short| short.ends_with(RUN_LETTERS))
}

/// What a prompt behind the words of a command is to its program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prompt {
    Code,
    Argument,
    /// The first word is no program that is known, and perhaps none at all: `sudo -u node …`.
    Unknown,
}

/// What the prompt after these words is, if the first of them is a program. An interpreter runs the text after its run
/// flag, or a file; once either is there, the prompt is an argument of it.
fn prompt_after(words: &[&str]) -> Prompt {
    let Some((program, arguments)) = words.split_first() else { return Prompt::Unknown };
    let name = file_name(program);
    let plain = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-'));
    let Some(interpreter) = INTERPRETERS.iter().find(|interpreter| lists(interpreter.names, plain)) else {
        return if lists(ARGUMENT_RUNNERS, name) { Prompt::Code } else { Prompt::Unknown };
    };
    let (mut has_code, mut expects_code, mut expects_value) = (false, false, false);
    for argument in arguments {
        let is_value = std::mem::take(&mut expects_value);
        match (argument.strip_prefix("--"), argument.strip_prefix(['-', '+'])) {
            (Some(long), _) => {
                let is_run_flag = RUN_WORDS.iter().any(|run| long.starts_with(run));
                has_code |= is_run_flag && long.contains('=');
                expects_code |= is_run_flag && !long.contains('=');
                expects_value = VALUE_FLAGS.contains(argument);
            }
            (None, Some(short)) => {
                expects_code |= short.contains(|letter| interpreter.run_letters.contains(letter));
                expects_value = short.ends_with(|letter| interpreter.value_letters.contains(letter));
            }
            (None, None) if *argument == "eval" => expects_code = true,
            (None, None) if is_value => {}
            // More texts may follow the first: `perl -e … -e …`.
            (None, None) if expects_code => (has_code, expects_code) = (true, false),
            (None, None) if has_code => return Prompt::Argument,
            (None, None) => return Prompt::Unknown,
        }
    }
    if expects_code || !has_code { Prompt::Code } else { Prompt::Argument }
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
