//! Commands and arguments with which a prompt would be run as code.

use switchboard_cli_agents::adapters::{Adapter, Declared, GenericOptions, Input, OrderError, Permissions};

use super::refused;

/// The words of a command; those with blanks are in quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('"').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[test]
fn a_prompt_is_never_code_of_an_interpreter() {
    let made = |command: &str, input| {
        let options = GenericOptions { command: words(command), input, ..GenericOptions::default() };
        Declared::generic(options).map(|_| ())
    };
    for command in [
        // A flag that runs a text, of any program.
        "/bin/sh -c",
        "env bash -lc --",
        "node --eval",
        "psql --command",
        "julia -E",
        "fd --exec",
        "docker run --rm image sh -c",
        "unknown-wrapper bash -c",
        // The same in a cluster, before another option, in another spelling, and within a word that is split.
        "bash -euxc",
        "bash -cx",
        "bash -c -x",
        "bash -c -o pipefail",
        "bash -o pipefail -euxc",
        "sh -ceu",
        "fish -C",
        "perl -lane",
        "perl -0777ne",
        "perl -e 1 -lane",
        "pwsh -NoProfile -Command",
        "php -r",
        "php -d a=b -r",
        "node -p",
        "node --print",
        "node --import tsx -p",
        "deno eval",
        "python3.12 -W error -Bcx",
        "sudo -u node -E bash -euxc",
        "sudo --user=coder bash -cx",
        "kubectl exec pod -- bash -euxc",
        "env -S",
        r#"env -S "bash -c""#,
        r#"env -S "unknown-wrapper bash -c""#,
        r#"env "-Sbash -c""#,
        r#"env "-vSbash -cx""#,
        r#"env "--split-string=bash -c""#,
        r#"env "--split=bash -c""#,
        "env --split",
        // A caller would name the file.
        "bash",
        "node --no-warnings",
        "python3 -m",
        "env PATH=/bin python3 -u",
        // Programs that give their arguments to a shell.
        "nice ssh host",
        "sudo /usr/bin/su coder",
        "runuser coder",
        "parallel",
        "script",
        "watch",
        "awk",
        "gawk",
        "mawk -v a=b",
    ] {
        for input in [Input::Argument, Input::BareArgument] {
            let error = made(command, input).map_or_else(|error| (error.field, error.wrong), |()| panic!("{command}"));
            assert_eq!((&*error.0, &*error.1), ("command", "would let the program run what a caller writes"));
        }
        made(command, Input::Stdin).unwrap();
    }
    for command in [
        "./bash-agent",
        "my-bash -cx",
        "agent -message",
        "agent -p",
        "claude -c -p",
        "agent --shell bash",
        "agent --runtime node -p",
        "cargo watch",
        "env SHELL=/bin/bash aider -p",
        "timeout 5m aider --message",
        "docker run --rm -e TOKEN image agent -p",
        r#"env -S "aider --message""#,
        "bash run.sh",
        "bash -e run.sh -p",
        "bash -euo pipefail run.sh -message",
        r#"bash -c "printf %s \$1; wc -c""#,
        r#"sudo bash -c "ssh host agent" bash"#,
        "node --no-warnings agent.js -p",
        "node -r ./setup.js agent.js -p",
        "node --eval=run()",
        "deno run -A agent.ts -p",
        "python3 -O agent.py -p",
        "python3 -m agent -p",
        "uv run python agent.py -p",
        "pwsh -NoProfile -File agent.ps1 -Prompt",
        "php agent.php -r",
    ] {
        for input in [Input::Argument, Input::BareArgument] {
            made(command, input).unwrap_or_else(|error| panic!("{command}: {error}"));
        }
    }
}

#[test]
fn arguments_that_are_added_cannot_make_a_prompt_code() {
    for (command, args) in
        [("agent", "-c"), ("env", "bash -cx"), ("nice -n 5", "ssh host"), ("env FOO=1", r#"-S "bash -c""#)]
    {
        let options = GenericOptions { command: words(command), input: Input::Argument, ..GenericOptions::default() };
        let declared = Declared::generic(options.clone()).unwrap();
        let error = declared.check_args(None, &Permissions::default(), &words(args)).unwrap_err();
        let expected = "args: would let the program run what a caller writes: name the script that is run, which gets \
                        the prompt";
        assert_eq!(error.to_string(), expected, "{command} {args}");
        assert_eq!(refused(options, |order| order.args = words(args)), OrderError::Unsupported(expected.to_owned()));
    }
}
