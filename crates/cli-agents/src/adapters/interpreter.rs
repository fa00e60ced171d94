//! Detects command lines that would execute the prompt as code: an interpreter runs a text after a flag such as `-c`, a
//! file given as an argument, and its standard input if it has neither.
//!
//! Only the programs listed here are detected, and options are parsed as most interpreters have them. What a script
//! does with its arguments cannot be checked.

use std::path::Path;

/// Programs that run texts; a version may follow the name.
const INTERPRETERS: &str = "\
    sh ash bash csh dash fish ksh tcsh zsh pwsh nu python pypy perl ruby node deno bun php lua Rscript awk gawk mawk \
    tclsh julia osascript";

/// Programs that start the program that their arguments name.
const WRAPPERS: &str = "\
    bwrap busybox caffeinate chroot chrt dbus-run-session docker doas env firejail flock ionice kubectl nice nohup \
    npx nsenter podman prlimit setpriv setsid stdbuf strace sudo systemd-run taskset time timeout unshare uv xargs";

/// Programs that join their arguments and pass them to a shell.
const SHELL_CALLERS: &str = "at batch parallel runuser script ssh su watch";

/// How the prompt is passed to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptPosition {
    /// It is an argument by itself that cannot be an option.
    Positional,
    /// It is a part of an argument, or the value of an option.
    Option,
    /// It is written to the program's standard input.
    Stdin,
}

/// The state of a scan over the arguments of a command line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interpreter {
    kind: Kind,
    /// Whether a text or a file was named that is run.
    has_code: bool,
    /// Whether it is a text, so that what follows in options may be run as well.
    runs_text: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Other,
    Wrapper,
    Interpreter,
    ShellCaller,
}

impl Interpreter {
    /// A program that was given no argument yet.
    pub(crate) fn of(program: &str) -> Self {
        Self { kind: Kind::of(program), has_code: false, runs_text: false }
    }

    /// The next argument.
    pub(crate) fn word(&mut self, argument: &str) {
        match self.kind {
            // `env --split-string=…` splits its value into words. Elsewhere `NAME=value` is a variable and no program.
            Kind::Wrapper => {
                let is_option = argument.starts_with('-');
                let words = argument.split_whitespace().filter(|word| is_option || !word.contains('='));
                for word in words.flat_map(|word| word.split('=')) {
                    match self.kind {
                        Kind::Wrapper => self.kind = Kind::of(word).behind_wrapper(),
                        _ => self.word(word),
                    }
                }
            }
            Kind::Interpreter if is_run_flag(argument) => {
                self.runs_text = true;
                self.has_code = argument.contains('=');
            }
            Kind::Interpreter => self.has_code |= !argument.starts_with('-'),
            Kind::Other | Kind::ShellCaller => {}
        }
    }

    /// Whether the program would execute a prompt that comes next; `option` is the text before it in the same argument.
    pub(crate) fn runs(mut self, position: PromptPosition, option: &str) -> bool {
        match self.kind {
            Kind::Wrapper => self.word(option),
            Kind::Interpreter if position == PromptPosition::Option && option.starts_with('-') => {
                self.runs_text |= is_run_option(option);
            }
            _ => {}
        }
        match (self.kind, position) {
            (Kind::Other | Kind::Wrapper, _) | (Kind::ShellCaller, PromptPosition::Stdin) => false,
            (Kind::ShellCaller, _) => true,
            (Kind::Interpreter, PromptPosition::Option) => !self.has_code || self.runs_text,
            (Kind::Interpreter, PromptPosition::Positional | PromptPosition::Stdin) => !self.has_code,
        }
    }
}

impl Kind {
    fn of(program: &str) -> Self {
        let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let plain = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-'));
        let lists = |names: &str, name: &str| names.split_whitespace().any(|listed| listed == name);
        if lists(INTERPRETERS, plain) {
            Self::Interpreter
        } else if lists(WRAPPERS, name) {
            Self::Wrapper
        } else if lists(SHELL_CALLERS, name) {
            Self::ShellCaller
        } else {
            Self::Other
        }
    }

    /// The kind after an argument of a wrapper: most arguments are its own options and their values.
    fn behind_wrapper(self) -> Self {
        if self == Self::Other { Self::Wrapper } else { self }
    }
}

/// Whether an argument is a flag that makes an interpreter run the text that follows: `-c`, `--eval`, also `-lc`.
fn is_run_flag(argument: &str) -> bool {
    let flag = argument.split('=').next().unwrap_or_default();
    match (flag.strip_prefix("--"), flag.strip_prefix('-')) {
        (Some(long), _) => ["command", "eval", "print"].iter().any(|run| long.starts_with(run)),
        (None, Some(short)) => short.ends_with(['c', 'e', 'p', 'E']),
        (None, None) => false,
    }
}

/// The same for the beginning of an argument whose rest may be the text: `-cprint(1)`.
fn is_run_option(option: &str) -> bool {
    is_run_flag(option) || (!option.starts_with("--") && option.contains(['c', 'e', 'p', 'E']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(words: &str, position: PromptPosition, option: &str) -> bool {
        let mut words = words.split(' ');
        let mut interpreter = Interpreter::of(words.next().unwrap_or_default());
        words.for_each(|word| interpreter.word(word));
        interpreter.runs(position, option)
    }

    #[test]
    fn words_are_code_behind_a_flag_as_a_file_and_on_the_input() {
        for (words, position, option, expected) in [
            ("bash -c", PromptPosition::Option, "", true),
            ("bash -c --", PromptPosition::Positional, "", true),
            ("bash -c code --", PromptPosition::Positional, "", false),
            ("bash -c code", PromptPosition::Option, "--p=", true),
            ("bash --", PromptPosition::Positional, "", true),
            ("bash -x", PromptPosition::Option, "", true),
            ("bash", PromptPosition::Stdin, "", true),
            ("bash -s", PromptPosition::Stdin, "", true),
            ("bash run.sh", PromptPosition::Stdin, "", false),
            ("/usr/bin/python3.12 -c", PromptPosition::Option, "", true),
            ("python3 -", PromptPosition::Stdin, "", true),
            ("python3 -m", PromptPosition::Option, "", true),
            ("python3 agent.py", PromptPosition::Option, "--p=", false),
            ("python3", PromptPosition::Option, "-c", true),
            ("python3", PromptPosition::Option, "-cx=", true),
            ("node", PromptPosition::Option, "--eval=", true),
            ("node --eval=run() --", PromptPosition::Positional, "", false),
            ("perl -ne", PromptPosition::Option, "", true),
            ("gawk", PromptPosition::Positional, "", true),
            ("awk -f rules.awk", PromptPosition::Positional, "", false),
            ("env PATH=/bin python3 -c", PromptPosition::Option, "", true),
            ("env SHELL=/bin/bash aider -p", PromptPosition::Option, "", false),
            ("sudo -u coder bash -c", PromptPosition::Option, "", true),
            ("nice -n 5 timeout 5m env python3.12", PromptPosition::Option, "-c", true),
            ("timeout 5m aider --message", PromptPosition::Option, "", false),
            ("docker run --rm image sh -c", PromptPosition::Option, "", true),
            ("nice ssh host --", PromptPosition::Positional, "", true),
            ("ssh host agent", PromptPosition::Stdin, "", false),
            ("env", PromptPosition::Option, "--split-string=python3 -c ", true),
            ("env", PromptPosition::Option, "--split-string=aider --message=", false),
            ("aider -c", PromptPosition::Option, "", false),
            ("my-bash -c", PromptPosition::Option, "", false),
        ] {
            assert_eq!(runs(words, position, option), expected, "{words} {option}");
        }
        let mut split = Interpreter::of("env");
        split.word("-S");
        split.word("python3 -c");
        assert!(split.runs(PromptPosition::Positional, ""));
    }
}
