//! Whether a program would run a caller's words as code: an interpreter does with a text that a flag gives it, with a
//! file it is told to run, and with its standard input if it is told nothing else.
//!
//! Only programs that are listed here are known to do so, and options are read as most interpreters have them. What a
//! script does with the words it is given cannot be known.

use std::path::Path;

/// Programs that run texts; a version may stand behind the name.
const INTERPRETERS: [&str; 27] = [
    "sh",
    "ash",
    "bash",
    "csh",
    "dash",
    "fish",
    "ksh",
    "tcsh",
    "zsh",
    "pwsh",
    "nu",
    "python",
    "pypy",
    "perl",
    "ruby",
    "node",
    "deno",
    "bun",
    "php",
    "lua",
    "Rscript",
    "awk",
    "gawk",
    "mawk",
    "tclsh",
    "julia",
    "osascript",
];

/// Programs that start the program that their arguments name.
const WRAPPERS: [&str; 31] = [
    "bwrap",
    "busybox",
    "caffeinate",
    "chroot",
    "chrt",
    "dbus-run-session",
    "docker",
    "doas",
    "env",
    "firejail",
    "flock",
    "ionice",
    "kubectl",
    "nice",
    "nohup",
    "npx",
    "nsenter",
    "podman",
    "prlimit",
    "setpriv",
    "setsid",
    "stdbuf",
    "strace",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "unshare",
    "uv",
    "xargs",
];

/// Programs that put their arguments together and give them to a shell.
const SHELL_CALLERS: [&str; 8] = ["at", "batch", "parallel", "runuser", "script", "ssh", "su", "watch"];

/// Where a caller's words stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// They are an argument by themselves that cannot be an option.
    Alone,
    /// They are a part of an argument, or the value of an option.
    Part,
    /// They are written to the program.
    Input,
}

/// What is known of a command line from its first words.
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

    /// Whether it would run a caller's words that come next, behind the beginning of an option if they are part of one.
    pub(crate) fn runs(mut self, place: Place, option: &str) -> bool {
        match self.kind {
            Kind::Wrapper => self.word(option),
            Kind::Interpreter if place == Place::Part && option.starts_with('-') => {
                self.runs_text |= is_run_option(option);
            }
            _ => {}
        }
        match (self.kind, place) {
            (Kind::Other | Kind::Wrapper, _) | (Kind::ShellCaller, Place::Input) => false,
            (Kind::ShellCaller, _) => true,
            (Kind::Interpreter, Place::Part) => !self.has_code || self.runs_text,
            (Kind::Interpreter, Place::Alone | Place::Input) => !self.has_code,
        }
    }
}

impl Kind {
    fn of(program: &str) -> Self {
        let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let plain = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-'));
        if INTERPRETERS.contains(&plain) {
            Self::Interpreter
        } else if WRAPPERS.contains(&name) {
            Self::Wrapper
        } else if SHELL_CALLERS.contains(&name) {
            Self::ShellCaller
        } else {
            Self::Other
        }
    }

    /// What an argument of a wrapper makes of it: most are options of its own, and their values.
    fn behind_wrapper(self) -> Self {
        if self == Self::Other { Self::Wrapper } else { self }
    }
}

/// Whether an interpreter takes an argument as: run the text that follows. `-lc` is such a flag too.
fn is_run_flag(argument: &str) -> bool {
    let flag = argument.split('=').next().unwrap_or_default();
    match (flag.strip_prefix("--"), flag.strip_prefix('-')) {
        (Some(long), _) => ["command", "eval", "print"].iter().any(|run| long.starts_with(run)),
        (None, Some(short)) => short.ends_with(['c', 'e', 'p', 'E']),
        (None, None) => false,
    }
}

/// The same for the beginning of an argument, behind which the text may stand at once: `-cprint(1)`.
fn is_run_option(option: &str) -> bool {
    is_run_flag(option) || (!option.starts_with("--") && option.contains(['c', 'e', 'p', 'E']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(words: &str, place: Place, option: &str) -> bool {
        let mut words = words.split(' ');
        let mut interpreter = Interpreter::of(words.next().unwrap_or_default());
        words.for_each(|word| interpreter.word(word));
        interpreter.runs(place, option)
    }

    #[test]
    fn words_are_code_behind_a_flag_as_a_file_and_on_the_input() {
        for (words, place, option, expected) in [
            ("bash -c", Place::Part, "", true),
            ("bash -c --", Place::Alone, "", true),
            ("bash -c code --", Place::Alone, "", false),
            ("bash -c code", Place::Part, "--p=", true),
            ("bash --", Place::Alone, "", true),
            ("bash -x", Place::Part, "", true),
            ("bash", Place::Input, "", true),
            ("bash -s", Place::Input, "", true),
            ("bash run.sh", Place::Input, "", false),
            ("/usr/bin/python3.12 -c", Place::Part, "", true),
            ("python3 -", Place::Input, "", true),
            ("python3 -m", Place::Part, "", true),
            ("python3 agent.py", Place::Part, "--p=", false),
            ("python3", Place::Part, "-c", true),
            ("python3", Place::Part, "-cx=", true),
            ("node", Place::Part, "--eval=", true),
            ("node --eval=run() --", Place::Alone, "", false),
            ("perl -ne", Place::Part, "", true),
            ("gawk", Place::Alone, "", true),
            ("awk -f rules.awk", Place::Alone, "", false),
            ("env PATH=/bin python3 -c", Place::Part, "", true),
            ("env SHELL=/bin/bash aider -p", Place::Part, "", false),
            ("sudo -u coder bash -c", Place::Part, "", true),
            ("nice -n 5 timeout 5m env python3.12", Place::Part, "-c", true),
            ("timeout 5m aider --message", Place::Part, "", false),
            ("docker run --rm image sh -c", Place::Part, "", true),
            ("nice ssh host --", Place::Alone, "", true),
            ("ssh host agent", Place::Input, "", false),
            ("env", Place::Part, "--split-string=python3 -c ", true),
            ("env", Place::Part, "--split-string=aider --message=", false),
            ("aider -c", Place::Part, "", false),
            ("my-bash -c", Place::Part, "", false),
        ] {
            assert_eq!(runs(words, place, option), expected, "{words} {option}");
        }
        let mut split = Interpreter::of("env");
        split.word("-S");
        split.word("python3 -c");
        assert!(split.runs(Place::Alone, ""));
    }
}
