//! Command-line agents in `agents.yaml`: what is refused, and why.

use crate::config_cli_agents::{ASKS_WITH_EVENTS, agents};

#[test]
fn a_kind_that_does_not_exist_is_answered_with_the_likely_one() {
    let content = "agents:
  - { name: a, cli: claude }
  - { name: b, cli: codx, cwdd: . }
  - { name: c, cli: emacs, timeout: 5, profiles: {} }
  - { name: d, cli: }
  - { name: e, cli: codex, builtin: echo, url: 'https://agent.example' }
";
    let choices = "claude-code, codex, cursor, gemini, opencode, acp, generic";
    agents(content).refused(&[
        "agents.yaml:2: agents[0].cli: \"claude\" is not one of its values: did you mean claude-code?",
        &format!("agents.yaml:3: agents[1].cli: \"codx\" is not one of its values: did you mean codex? (one of {choices})"),
        "agents.yaml:3: agents[1].cwdd: unknown key: did you mean cwd?",
        &format!("agents.yaml:4: agents[2].cli: \"emacs\" is not one of its values: the choices are {choices}"),
        "agents.yaml:4: agents[2].timeout: \"5\" has no unit: write none, or a number with a unit, such as 250ms, 30s, 10m, 12h or 7d",
        "agents.yaml:5: agents[3].cli: has no value: write claude-code, codex, cursor, gemini, opencode, acp or generic",
        "agents.yaml:6: agents[4].builtin: cli says already which agent it is: keep one of the two",
        "agents.yaml:6: agents[4].url: cli says already which agent it is: keep one of the two",
    ]);
}

#[test]
fn keys_that_fit_another_kind_are_refused_with_the_reason() {
    let content = "agents:
  - name: a
    cli: claude-code
    command: [claude, -p]
    adapter: a.yaml
    input: argument
    output: jsonl
    approval: { pattern: sure }
  - name: b
    cli: acp
  - name: c
    cli: acp
    command: [agent, --acp]
    program: agent
    args: [-v]
    input: stdin
  - name: d
    cli: generic
  - name: e
    cli: generic
    adapter: e.yaml
    command: [e]
    input: stdin
    output: text
    approval: { pattern: sure }
  - name: f
    cli: generic
    command: [f]
    output: jsonl
    approval: { pattern: sure }
    model: large
    models: [large]
    effort: high
    efforts: [high]
  - name: g
    cli: generic
    command: [g]
    permissions: { deny: [Bash] }
  - name: h
    cli: generic
    command: [h]
    separator: none
    approval: { events: true, pattern: sure, no: nay }
  - name: i
    cli: generic
    command: [i]
    output: jsonl
    permissions: { default: deny }
  - { name: j, cli: codex, separator: none }
  - { name: k, cli: generic, adapter: k.yaml, separator: dashes }
";
    let talks = "remove it, or write cli: generic";
    let told = "a generic command is told nothing but the prompt: put it into command, or describe the program in an adapter file";
    let said = "the adapter file says that already: remove one of the two";
    agents(content).refused(&[
        "agents.yaml:4: agents[0].command: claude-code knows its own command: use program or args",
        &format!("agents.yaml:5: agents[0].adapter: it is known how claude-code talks: {talks}"),
        &format!("agents.yaml:6: agents[0].input: it is known how claude-code talks: {talks}"),
        &format!("agents.yaml:7: agents[0].output: it is known how claude-code talks: {talks}"),
        &format!("agents.yaml:8: agents[0].approval: it is known how claude-code talks: {talks}"),
        "agents.yaml:9: agents[1]: acp needs a command: add command: with the program and its arguments, such as [my-agent, --acp]",
        "agents.yaml:14: agents[2].program: command names the program already: remove one of the two",
        "agents.yaml:15: agents[2].args: command holds the arguments already: put them into command",
        &format!("agents.yaml:16: agents[2].input: it is known how acp talks: {talks}"),
        "agents.yaml:17: agents[3]: generic needs a command or an adapter: add command: with the program and its arguments, such as [./lint.sh, --json], or adapter: with a file",
        &format!("agents.yaml:22: agents[4].command: {said}"),
        &format!("agents.yaml:23: agents[4].input: {said}"),
        &format!("agents.yaml:24: agents[4].output: {said}"),
        &format!("agents.yaml:25: agents[4].approval: {said}"),
        "agents.yaml:30: agents[5].approval: a program that writes jsonl asks with a line of its own: write { events: true }, or output: text",
        &format!("agents.yaml:31: agents[5].model: {told}"),
        &format!("agents.yaml:32: agents[5].models: {told}"),
        &format!("agents.yaml:33: agents[5].effort: {told}"),
        &format!("agents.yaml:34: agents[5].efforts: {told}"),
        "agents.yaml:38: agents[6].permissions: a program that only writes text never asks, so that nothing holds it back: add approval: with the pattern of its questions, or remove it",
        "agents.yaml:42: agents[7].separator: the prompt is no argument, so that nothing stands before it: remove it, or write input: argument",
        "agents.yaml:43: agents[7].approval.pattern: events says already how it asks: remove one of the two",
        "agents.yaml:43: agents[7].approval.no: events says already how it asks: remove one of the two",
        "agents.yaml:43: agents[7].approval: a program that writes text has no events: write the pattern of its questions, or output: jsonl",
        "agents.yaml:48: agents[8].permissions: a program without approval never asks, so that nothing holds it back: add approval: { events: true } if it asks with an event, or remove it",
        &format!("agents.yaml:49: agents[9].separator: it is known how codex talks: {talks}"),
        &format!("agents.yaml:50: agents[10].separator: {said}"),
    ]);
}

#[test]
fn values_that_cannot_be_are_named_with_what_would_be_right() {
    let content = "agents:
  - name: a
    cli: codex
    args: --full-auto -v
    cwd: ~/repo
    repos: [., ~/all]
    worktree: yes
    repoLock: sometimes
    env: [PATH, 'KEY=hunter2']
    timeout: 0s
    idle: soon
    maxParallel: 0
    limits: { line: 1GiB, events: 0, lines: 3 }
    permissions: { default: maybe, allow: [Read, ''], expiry: 0s }
    model: large
    models: [small, quick]
    effort: high
    efforts: [low]
    context: some
  - name: b
    cli: generic
    command: ./lint.sh --json
    input: file
    output: json
    approval: { yes: n }
  - name: c
    cli: generic
    command: []
    approval: { pattern: '[y/N' }
  - name: d
    cli: generic
    command: [d, [e]]
    approval: { pattern: 'x*' }
    permissions: { allow: [prompt], deny: [prompt] }
  - name: e
    cli: generic
    command: [\"e\\0\"]
    approval: { pattern: sure, yes: \"y\\ny\" }
  - name: f
    cli: generic
    command: [f]
    input: argument
    separator: '--'
    permissions: { allow: ['Bash(git *)'] }
    approval: { events: maybe, pattern: sure }
";
    let limit = "write none, or a number with a unit, such as 250ms, 30s, 10m, 12h or 7d";
    let count = "write a whole number of at least 1, such as 1000";
    let shell = "is one text, and no shell is there to split it";
    let command = "write a list in brackets, the program first, such as [./lint.sh, --json]";
    let question = r"'\[y/N\] *$'";
    agents(content).refused(&[
        &format!("agents.yaml:4: agents[0].args: {shell}: write a list in brackets, each argument by itself, such as [--flag, value]"),
        "agents.yaml:5: agents[0].cwd: \"~/repo\" begins with a ~, which only a shell understands: write ${HOME}/repo",
        "agents.yaml:6: agents[0].repos: \"~/all\" begins with a ~, which only a shell understands: write ${HOME}/all",
        "agents.yaml:7: agents[0].worktree: \"yes\" is not one of its values: the choices are off, keep, remove",
        "agents.yaml:8: agents[0].repoLock: \"sometimes\" is neither true nor false: write true or false",
        "agents.yaml:9: agents[0].env: \"KEY=…\" has a value: write only the name and set the variable for the server",
        "agents.yaml:10: agents[0].timeout: \"0s\" leaves no time at all: write none for no limit",
        &format!("agents.yaml:11: agents[0].idle: \"soon\" is not a length of time: {limit}"),
        &format!("agents.yaml:12: agents[0].maxParallel: 0 leaves room for nothing: {count}"),
        &format!("agents.yaml:13: agents[0].limits.events: 0 leaves room for nothing: {count}"),
        "agents.yaml:13: agents[0].limits.line: a line may have 1GiB and the whole output only 256MiB: make limits.output at least as large as limits.line",
        "agents.yaml:13: agents[0].limits.lines: unknown key: did you mean line?",
        "agents.yaml:14: agents[0].permissions.default: \"maybe\" is not one of its values: the choices are ask, allow, deny",
        "agents.yaml:14: agents[0].permissions.allow: a rule is empty: write the name of a tool, such as Read or mcp__*, or a command such as Bash(git *)",
        "agents.yaml:14: agents[0].permissions.expiry: 0s leaves no time at all: write a number with a unit, such as 250ms, 30s, 10m, 12h or 7d",
        "agents.yaml:15: agents[0].model: \"large\" is not among models: add it to models, or write one of small, quick",
        "agents.yaml:17: agents[0].effort: \"high\" is not among efforts: add it to efforts, or write one of low",
        "agents.yaml:19: agents[0].context: \"some\" is neither true nor false: write true or false",
        &format!("agents.yaml:22: agents[1].command: {shell}: {command}"),
        "agents.yaml:23: agents[1].input: \"file\" is not one of its values: the choices are stdin, argument",
        "agents.yaml:24: agents[1].output: \"json\" is not one of its values: did you mean jsonl? (one of text, jsonl)",
        &format!("agents.yaml:25: agents[1].approval: has no pattern: add pattern: with a regular expression for the question, such as {question}, or events: true for a program that writes jsonl"),
        "agents.yaml:25: agents[1].approval: yes and no are both \"n\": write two answers that differ",
        &format!("agents.yaml:28: agents[2].command: names no program: {command}"),
        &format!("agents.yaml:29: agents[2].approval.pattern: \"[y/N\" is no regular expression (non-empty character class has no closing bracket): write one such as {question}, in single quotes"),
        &format!("agents.yaml:32: agents[3].command: an item is a list: {command}"),
        r"agents.yaml:33: agents[3].approval.pattern: fits an empty line, so it would fit every line: write what only a question holds, such as '\[y/N\]'",
        "agents.yaml:34: agents[3].permissions.allow: \"prompt\" is in deny too, which wins: keep it in one of the two",
        "agents.yaml:37: agents[4].command: \"e\\0\" holds a zero character: no argument can; remove it",
        "agents.yaml:38: agents[4].approval.yes: holds a line end or a zero character: write one line, such as y",
        "agents.yaml:43: agents[5].separator: \"--\" is not one of its values: the choices are dashes, none",
        "agents.yaml:44: agents[5].permissions.allow: \"Bash(git *)\" has a pattern, and generic does not report such a command: name the tool alone",
        "agents.yaml:45: agents[5].approval.events: \"maybe\" is neither true nor false: write true or false",
    ]);
}

#[test]
fn rules_with_a_pattern_are_for_what_can_be_held_to_them() {
    let content = "agents:
  - { name: a, cli: claude-code, permissions: { deny: ['Bash(rm *)'] } }
  - { name: b, cli: claude-code, permissions: { allow: ['Read(src/*)'] } }
  - { name: c, cli: claude-code, permissions: { allow: ['Bash(git * && ls)'] } }
  - { name: d, cli: claude-code, permissions: { allow: ['(git *)'] } }
  - { name: e, cli: claude-code, permissions: { allow: ['Bash()'] } }
  - { name: f, cli: claude-code, permissions: { allow: ['Bash(git'] } }
  - { name: g, cli: gemini, permissions: { allow: ['run_shell_command(git *)'] } }
  - { name: h, cli: claude-code, permissions: { deny: ['B*'], allow: ['Bash(git *)'] } }
  - { name: i, cli: claude-code, permissions: { default: allow, allow: ['Bash(git *)'] } }
  - { name: j, cli: claude-code, permissions: { allow: [Bash, 'Bash(git *)'] } }
  - { name: k, cli: claude-code, permissions: { allow: ['Bash(git status )'] } }
  - { name: l, cli: claude-code, permissions: { allow: ['Bash(git:*)'] } }
";
    let write = "write the name of a tool, such as Read or mcp__*, or a command such as Bash(git *)";
    let known = "patterns are for Bash; name other tools alone";
    let nothing = "\"Bash(git *)\" holds nothing back: every command of Bash is allowed: write default: ask or deny, and allow no more than the pattern";
    agents(content).refused(&[
        "agents.yaml:2: agents[0].permissions.deny: \"Bash(rm *)\" has a pattern, and a shell can say the same in other words: write default: deny, and what may be run under allow",
        &format!("agents.yaml:3: agents[1].permissions.allow: \"Read(src/*)\" has a pattern, and claude-code does not report such a command: {known}"),
        "agents.yaml:4: agents[2].permissions.allow: \"Bash(git * && ls)\" would never fit: a command with ; & | $ ` < > ( ) or a line break is asked about: write a pattern of one simple command, such as Bash(git *)",
        &format!("agents.yaml:5: agents[3].permissions.allow: \"(git *)\" has no tool: {write}"),
        &format!("agents.yaml:6: agents[4].permissions.allow: \"Bash()\" has no pattern: {write}"),
        &format!("agents.yaml:7: agents[5].permissions.allow: \"Bash(git\" is neither a name nor a name with a pattern in brackets: {write}"),
        "agents.yaml:8: agents[6].permissions.allow: \"run_shell_command(git *)\" has a pattern, and gemini does not report such a command: name the tool alone",
        "agents.yaml:9: agents[7].permissions.allow: deny names Bash, which wins over \"Bash(git *)\": remove it from deny, and write default: deny for the rest",
        &format!("agents.yaml:10: agents[8].permissions.allow: {nothing}"),
        &format!("agents.yaml:11: agents[9].permissions.allow: {nothing}"),
        "agents.yaml:12: agents[10].permissions.allow: \"Bash(git status )\" would never fit: commands are compared without the spaces around them: remove the space next to the bracket",
        "agents.yaml:13: agents[11].permissions.allow: \"Bash(git:*)\" is only about commands that begin with git:: write Bash(git *) for git with any arguments",
    ]);
}

#[test]
fn permissions_of_a_skill_are_checked_like_those_of_its_agent() {
    let content = "agents:
  - name: a
    cli: claude-code
    permissions: { allow: [Read] }
    skills:
      - { name: review, description: x, permissions: { deny: [Read], default: maybe, expiry: 1h } }
      - { name: other, description: x, permissions: { allow: [Raed] } }
  - name: b
    builtin: echo
    skills: [{ name: review, description: x, permissions: { default: deny } }]
  - name: c
    cli: generic
    command: [c]
    skills: [{ name: review, description: x, permissions: { default: deny } }]
  - name: d
    cli: claude-code
    skills:
      - { name: review, description: x, permissions: { default: deny } }
      - { name: review, description: y, permissions: { default: allow } }
";
    agents(content).refused(&[
        "agents.yaml:6: agents[0].skills[0].permissions.default: \"maybe\" is not one of its values: the choices are ask, allow, deny",
        "agents.yaml:6: agents[0].skills[0].permissions.deny: \"Read\" is in allow of the agent, over which it wins: write allow for this skill too",
        "agents.yaml:6: agents[0].skills[0].permissions.expiry: unknown key: the keys here are default, allow, deny",
        "agents.yaml:7: agents[0].skills[1].permissions.allow: \"Raed\" can be about no tool of claude-code, so that nothing would come of it: did you mean Read?",
        "agents.yaml:10: agents[1].skills[0].permissions: only a program has permissions: remove it, or write cli: for the agent",
        "agents.yaml:14: agents[2].skills[0].permissions: a program that only writes text never asks, so that nothing holds it back: add approval: with the pattern of its questions, or remove it",
        "agents.yaml:19: agents[3].skills[1].name: two skills are called \"review\": give each a name of its own: requests choose a skill by it",
    ]);
}

#[test]
fn keywords_are_for_complex_and_routine_and_differ() {
    let content = "agents:
  - name: a
    cli: claude-code
    profiles: { complex: { keywords: [Schema] }, mid: { keywords: [x] }, routine: { keywords: [schema] } }
";
    agents(content).refused(&[
        "agents.yaml:4: agents[0].profiles.mid.keywords: mid is for what has no words of the others: give complex and routine their words; what has none of either is done with mid",
        "agents.yaml:4: agents[0].profiles: \"schema\" is a keyword of complex and of routine: keep it in one of the two",
    ]);
}

#[test]
fn profiles_are_all_three_or_none_and_each_fits_its_agent() {
    let content = "agents:
  - name: a
    cli: codex
    profiles: { complex: {}, MID: {}, mid: {}, easy: {} }
  - name: b
    cli: codex
    profiles:
      complex: { cli: acp }
      mid: { cli: claude, modle: large }
      routine: { program: ~/codex }
  - name: c
    cli: generic
    command: [c]
    profiles:
      complex: { model: large, args: [--deep] }
      mid: { program: d }
      routine: { cli: codex, program: d, model: small }
  - name: d
    cli: codex
    profiles:
  - name: e
    cli: codex
    model: middle
    models: [middle, large]
    profiles:
      complex: { model: huge, models: [large], effort: high, efforts: low }
      mid: { models: [large] }
      routine: { cli: gemini, models: [quick] }
  - name: f
    cli: generic
    command: [f]
    profiles: { complex: { models: [large], efforts: [high] }, mid: {}, routine: { cli: codex, models: [x] } }
";
    agents(content).refused(&[
        "agents.yaml:4: agents[0].profiles.MID: mid is the same profile: keep one of the two",
        "agents.yaml:4: agents[0].profiles: has no routine: write complex, mid and routine; one that is {} is like the agent itself",
        "agents.yaml:4: agents[0].profiles.easy: unknown key: the keys here are complex, MID, mid, routine",
        "agents.yaml:8: agents[1].profiles.complex.cli: a profile cannot say the command that acp needs: write cli: acp for the agent itself, or a program that is known by its name",
        "agents.yaml:9: agents[1].profiles.mid.cli: \"claude\" is not one of its values: did you mean claude-code?",
        "agents.yaml:9: agents[1].profiles.mid.modle: unknown key: did you mean model?",
        "agents.yaml:10: agents[1].profiles.routine.program: \"~/codex\" begins with a ~, which only a shell understands: write ${HOME}/codex",
        "agents.yaml:15: agents[2].profiles.complex.model: a generic command is told nothing but the prompt: put it into args",
        "agents.yaml:16: agents[2].profiles.mid.program: the agent's command names the program already: put the difference into args",
        "agents.yaml:20: agents[3].profiles: has no complex and no mid and no routine: write complex, mid and routine; one that is {} is like the agent itself",
        "agents.yaml:26: agents[4].profiles.complex.model: \"huge\" is not among models: add it to models, or write one of large",
        "agents.yaml:26: agents[4].profiles.complex.effort: \"high\" is not among efforts: add it to efforts, or write one of low",
        "agents.yaml:27: agents[4].profiles.mid.models: \"middle\" is not among models: add it to models, or write one of large",
        "agents.yaml:32: agents[5].profiles.complex.models: a generic command is told nothing but the prompt: put it into args",
        "agents.yaml:32: agents[5].profiles.complex.efforts: a generic command is told nothing but the prompt: put it into args",
    ]);
}

#[test]
fn a_file_that_describes_a_program_is_read_as_serve_reads_it() {
    let good = "name: aider\nbinary: { names: [aider] }\nstart: { args: ['--message={prompt}'] }\noutput: text\n";
    let wrong = good.replace("output: text", "output: words\ncolour: red");
    let each = [
        (
            "absent.yaml",
            "adapter: FOLDER/absent.yaml cannot be read (No such file or directory (os error 2)): name a file that the server may read",
        ),
        ("wrong.yaml", "FOLDER/wrong.yaml: output: is \"words\": write text or jsonl"),
        ("broken.yaml", "FOLDER/broken.yaml: this is not YAML that can be read"),
        ("good.yaml", "permissions.default: aider cannot be run with ask: write allow"),
    ];
    for (file, text) in each {
        let content =
            format!("agents:\n  - {{ name: a, builtin: echo }}\n  - {{ name: b, cli: generic, adapter: {file} }}\n");
        let workspace =
            agents(&content).file("good.yaml", good).file("wrong.yaml", &wrong).file("broken.yaml", "a: [b");
        let folder = workspace.path().canonicalize().unwrap();
        let text = format!("agent b: {}", text.replace("FOLDER", folder.to_str().unwrap()));
        let checked = workspace.run(&["config", "check"]);
        let expected = format!("agents.yaml:3: {text}");
        assert!(checked.errors()[0].starts_with(&expected), "{expected}\n{}", checked.stderr);
        assert_eq!((checked.code, checked.stdout.as_str()), (Some(1), ""));
        assert_eq!(checked.errors().len(), if file == "wrong.yaml" { 2 } else { 1 }, "{}", checked.stderr);
        let served = workspace.run(&["serve", "--bind", "127.0.0.1:0"]);
        assert!(served.errors()[0].starts_with(&text), "{text}\n{}", served.stderr);
        let answer = workspace.run(&["config", "check", "-o", "json"]).json();
        assert_eq!((&answer["ok"], &answer["problems"][0]["origin"]["line"]), (&false.into(), &3.into()));
    }
}

#[test]
fn what_a_described_program_cannot_be_told_or_be_called_is_refused() {
    let declared = "name: NAME\nbinary: { names: [x] }\nstart: { args: ['--message={prompt}'] }\noutput: text\n";
    let check = |keys: &str| {
        let mut workspace = agents(&format!("agents:\n  - {{ name: a, cli: generic, {keys} }}\n"));
        for name in ["aider", "codex", "acp"] {
            workspace = workspace.file(&format!("{name}.yaml"), declared.replace("NAME", name));
        }
        let asks = declared.replace("NAME", "asks") + "approvals: { pattern: sure }\n";
        let workspace = workspace.file("asks.yaml", asks).file("runner.yaml", ASKS_WITH_EVENTS);
        let run = workspace.run(&["config", "check"]);
        run.errors().join("\n")
    };
    let allowed = "permissions: { default: allow }";
    assert_eq!(check(&format!("adapter: aider.yaml, {allowed}")), "");
    for (key, value, word) in [
        ("model", "x", "model"),
        ("models", "[x]", "model"),
        ("effort", "x", "effort"),
        ("efforts", "[x]", "effort"),
        ("profiles", "{ complex: {}, mid: { model: x }, routine: {} }", "model"),
    ] {
        let refused = check(&format!("adapter: aider.yaml, {allowed}, {key}: {value}"));
        let key = if key == "profiles" { "model" } else { key };
        let text = format!("{key}: aider has no argument for it: remove {key}, or write {{{word}}} in start.args of ");
        assert!(refused.starts_with(&format!("agents.yaml:2: agent a: {text}")), "{refused}");
    }
    let asking = "agents.yaml:2: agent a: permissions.default: aider cannot be run with ask: write allow";
    assert_eq!(check("adapter: aider.yaml"), asking);
    let named = "permissions.deny: \"shell\" can be about no tool of asks, so that nothing would come of it: the names here are prompt";
    assert_eq!(check("adapter: asks.yaml, permissions: { deny: [shell] }"), format!("agents.yaml:2: agent a: {named}"));
    assert_eq!(check("adapter: asks.yaml, permissions: { deny: [prompt] }"), "");
    let pattern = "permissions: { allow: ['Bash(git *)'] }";
    let unreported = "permissions.allow: \"Bash(git *)\" has a pattern, and asks does not report such a command: name the tool alone";
    assert_eq!(check(&format!("adapter: asks.yaml, {pattern}")), format!("agents.yaml:2: agent a: {unreported}"));
    assert_eq!(check(&format!("adapter: runner.yaml, {pattern}")), "");
    let another = "profiles: { complex: { cli: claude-code }, mid: {}, routine: {} }";
    assert_eq!(check(&format!("adapter: asks.yaml, {pattern}, {another}")), "", "one of its programs reports it");
    let run = "agents.yaml:2: agent a: args: would let the program run what a caller writes: name the script that is run, \
               which gets the prompt";
    let profiles = |args: &str| format!("profiles: {{ complex: {{ args: [{args}] }}, mid: {{}}, routine: {{}} }}");
    assert_eq!(check(&format!("command: [agent], input: argument, {}", profiles("-c"))), run);
    assert_eq!(check(&format!("command: [env], input: argument, {}", profiles("bash, -cx"))), run);
    assert_eq!(check(&format!("command: [env], {}", profiles("bash, run.sh"))), "");
    assert_eq!(check(&format!("adapter: aider.yaml, {allowed}, program: /bin/bash, args: [-c]")), run);
    for taken in ["codex", "acp"] {
        let refused = check(&format!("adapter: {taken}.yaml"));
        let end = format!("{taken}.yaml: name: \"{taken}\" is the name of a kind that is known: choose another one");
        assert!(refused.ends_with(&end), "{refused}");
    }
}
