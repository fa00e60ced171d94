//! Declarations that are wrong.

use switchboard_cli_agents::adapters::Declared;

use super::{QWEN, wrong};

#[test]
fn a_wrong_declaration_is_refused_by_field_with_what_would_be_right() {
    for (lines, expected) in [
        ("name: My Agent", "x.yaml: name: \"My Agent\" cannot be a name: write what cli: calls it"),
        ("titel: X", "x.yaml: titel: is not a key: remove it, or write one of name, title, binary, "),
        ("binary: { names: [] }", "x.yaml: binary.names: names no program"),
        (
            "binary: { names: [x], tested: [0.86] }",
            "x.yaml: binary.tested: is a list: write a list of texts, in quotes",
        ),
        ("binary: { names: [x], install: 3 }", "x.yaml: binary.install: is the number 3: write a text"),
        ("binary: x", "x.yaml: binary: is \"x\": write keys and values here"),
        ("variables: [A-B]", "x.yaml: variables: \"A-B\" cannot be the name of a variable"),
        ("env: { A: 1 }", "x.yaml: env.A: is the number 1: "),
        ("start: {}", "x.yaml: start.args: is missing: write a list of texts"),
        ("start: { args: [a] }", "x.yaml: start.args: do not hold the prompt: write {prompt} in one argument"),
        (
            "start: { args: ['--a={prompt}', '--b={prompt}'] }",
            "x.yaml: start.args: would give the prompt more than once",
        ),
        (
            "start: { args: ['--a={promt}'] }",
            "x.yaml: start.args[0]: {promt} stands for nothing: write one of {prompt}, ",
        ),
        ("start: { args: ['--a={prompt}', 3] }", "x.yaml: start.args[1]: is neither a text nor a list of texts"),
        (
            "start: { args: [--model, '{model}', '--a={prompt}'] }",
            "x.yaml: start.args[1]: may be absent, and the flag before it would be left without a value: put both",
        ),
        (
            "start: { args: [[--model, '{model}', '--a={prompt}']] }",
            "x.yaml: start.args[0]: holds {prompt} beside a value that may be absent",
        ),
        ("start: { args: ['--a={prompt}'], input: file }", "x.yaml: start.input: is \"file\": write none or prompt"),
        ("resume: { args: ['--a={prompt}'] }", "x.yaml: resume.args: do not say which conversation"),
        (
            "resume: { args: ['--a={prompt}', '--r={session}'] }",
            "x.yaml: resume: has no way to learn a conversation's name",
        ),
        ("output: xml", "x.yaml: output: is \"xml\": write text or jsonl"),
        ("output: jsonl", "x.yaml: rules: are missing: write what its lines mean"),
        (
            "output: jsonl\nrules: [{ text: a }]",
            "x.yaml: rules: never tell that a turn went well: add a rule with done",
        ),
        ("output: jsonl\nrules: { text: a }", "x.yaml: rules: is a mapping: write a list"),
        ("output: jsonl\nsuccess: exit\nrules: [{ done: {} }]", "x.yaml: success: is exit, and a rule has done"),
        ("success: result", "x.yaml: success: is result, and plain text has none"),
        ("rules: [{ text: a }]", "x.yaml: rules: are about JSON lines, and the output is text"),
        ("output: jsonl\nrules: [{ when: { a: 1 } }, { done: {} }]", "x.yaml: rules[0]: tells nothing: add text"),
        (
            "output: jsonl\nrules: [{ text: a..b, done: {} }]",
            "x.yaml: rules[0].text: \"a..b\" is not a place: write names",
        ),
        (
            "output: jsonl\nrules: [{ when: { a: { is: 1 } }, done: {} }]",
            "x.yaml: rules[0].when.a: cannot be compared with",
        ),
        ("output: jsonl\nrules: [{ when: { a.: 1 }, done: {} }]", "x.yaml: rules[0].when.a.: is not a place"),
        ("output: jsonl\nrules: [{ toolUse: { name: a }, done: {} }]", "x.yaml: rules[0].toolUse.name: is not a key"),
        (
            "output: jsonl\nrules: [{ error: { kind: bad }, done: {} }]",
            "x.yaml: rules[0].error.kind: is \"bad\": write reported or ",
        ),
        (
            "output: jsonl\nrules: [{ ignore: true, done: {} }]",
            "x.yaml: rules[0].ignore: stands beside something to tell",
        ),
        (
            "output: jsonl\nrules: [{ each: a, done: {} }]",
            "x.yaml: rules[0].rules: is missing: write the rules for the items",
        ),
        ("output: jsonl\nrules: [{ rules: [{ text: a }], done: {} }]", "x.yaml: rules[0].each: is missing"),
        (
            "output: jsonl\nrules: [{ each: a, rules: [{ each: b, rules: [{ text: c }] }], done: {} }]",
            "x.yaml: rules[0].rules[0].each: is not a key",
        ),
        ("approvals: { pattern: '[' }", "x.yaml: approvals.pattern: \"[\" is no regular expression ("),
        ("approvals: {}", "x.yaml: approvals.pattern: is missing"),
        ("approvals: { pattern: 'x*' }", "x.yaml: approvals.pattern: fits an empty line"),
        (
            "approvals: { pattern: 'a{1000}{1000}{1000}' }",
            "x.yaml: approvals.pattern: \"a{1000}{1000}{1000}\" is no regular expression (",
        ),
        ("approvals: { pattern: x, yes: \"y\\ny\" }", "x.yaml: approvals.yes: holds a line end"),
        ("approvals: { pattern: x, no: \"\\0\" }", "x.yaml: approvals.no: holds a line end"),
        ("output: jsonl\napprovals: { pattern: x }", "x.yaml: approvals: is about text, and the output is jsonl"),
        ("output: jsonl\napprovals: { event: true }", "x.yaml: approvals.event: is not a key"),
        ("exits: [{ kind: limit }]", "x.yaml: exits[0]: fits every end: write code, stderr"),
        ("exits: [{ code: '1' }]", "x.yaml: exits[0].code: is \"1\": write a whole number"),
        ("exits: [{ code: 1 }]", "x.yaml: exits[0].kind: is missing: write what it means"),
        ("permissions: {}", "x.yaml: permissions: allows no way to start it"),
        ("permissions: { ask: {} }", "x.yaml: permissions.ask: needs a program that asks"),
    ] {
        let error = wrong(lines);
        assert!(error.lines().any(|line| line.starts_with(expected)), "{lines}\n{error}");
    }
}

#[test]
fn all_problems_are_told_at_once_and_broken_yaml_is_one() {
    let error = Declared::parse("title: X\nextra: 1\n", "x.yaml").map(|_| ()).unwrap_err();
    let fields: Vec<&str> = error.problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["name", "binary", "start", "output", "extra"]);
    for (yaml, expected) in [
        ("name: [", "x.yaml: this is not YAML that can be read ("),
        ("name: a\nname: b\n", "x.yaml: this is not YAML that can be read ("),
        ("", "x.yaml: has no value: write keys and values here"),
        ("- a", "x.yaml: is a list: write keys and values here"),
        (&"[".repeat(10_000), "x.yaml: this is not YAML that can be read ("),
    ] {
        let error = Declared::parse(yaml, "x.yaml").map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with(expected) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn a_declaration_cut_at_a_line_is_refused_until_it_says_what_is_good() {
    let good = QWEN.find("done:").unwrap();
    let ends = QWEN.match_indices('\n').map(|(at, _)| at).filter(|at| *at < good);
    assert!(ends.clone().count() > 20);
    for end in ends {
        assert!(Declared::parse(&QWEN[..end], "x.yaml").is_err(), "{}", &QWEN[..end]);
    }
}
