//! Texts of programs as people see them: without terminal codes, cut, and the line of standard error that tells.

use std::borrow::Cow;

use switchboard_cli_agents::adapters::{Exit, cut, plain, plain_lines};

#[test]
fn only_what_a_terminal_shows_is_left() {
    for (line, shown) in [
        ("plain\ttext äß", "plain\ttext äß"),
        ("\u{1b}[1;31mred\u{1b}[0m and \u{1b}[38:2::1:2:3mmore", "red and more"),
        ("\u{1b}]0;a title\u{7}after", "after"),
        ("\u{1b}]8;;https://example.com\u{1b}\\link\u{1b}]8;;\u{1b}\\!", "link!"),
        ("\u{1b}(Bletters\u{1b}=", "letters"),
        ("\u{9b}31mred\u{9d}title\u{9c}!", "red!"),
        ("\u{1b}Psecret\u{1b}\\seen", "seen"),
        ("a\rb", "a\nb"),
        ("\r10 %\r\r\u{1b}[2K50 %\r100 %\r", "10 %\n50 %\n100 %"),
        ("a\u{0}b\u{8}c\u{7f}d\u{85}", "abcd"),
        ("\u{1b}", ""),
        ("\u{1b}[", ""),
        ("\u{1b}[31", ""),
        ("\u{1b}]never ended", ""),
        ("\u{1b}ä", "ä"),
    ] {
        assert_eq!(plain_lines(line), shown, "{line:?}");
    }
}

#[test]
fn a_text_keeps_its_lines_and_one_without_codes_everything() {
    let coded = "\u{1b}[1mone\u{1b}[0m\r\n10 %\r20 %\ntwo\u{1b}]never ended\nthree";
    assert_eq!(plain(coded), "one\n10 %\n20 %\ntwo\nthree");
    for text in ["one\r\ntwo\r\n", "a\rb", "a\tb", "ö🦀", ""] {
        assert!(matches!(plain(text), Cow::Borrowed(same) if same == text), "{text:?}");
    }
}

#[test]
fn a_text_is_cut_between_characters_and_only_if_it_is_longer() {
    assert_eq!(cut("öäü", 3), "öäü");
    assert_eq!(cut("öäüß", 3), "öä…");
    assert_eq!(cut("", 0), "");
    assert_eq!(cut("a", 0), "…");
}

#[test]
fn what_has_gone_wrong_is_told_and_not_the_version_of_the_runtime_below_it() {
    let told = |stderr: &str| Exit { code: Some(1), stderr: stderr.to_owned(), ..Exit::default() }.describe();
    let bun = "EACCES: permission denied, mkdir '/nonexistent'\n    path: \"/nonexistent\",\n   errno: -13,\n    \
               code: \"EACCES\"\n\n\nBun v1.3.14 (Linux x64 baseline)\n";
    assert_eq!(told(bun), "exited with code 1: EACCES: permission denied, mkdir '/nonexistent'");
    let node = "node:internal/modules/cjs/loader:1143\n  throw err;\n  ^\n\nError: Cannot find module 'x'\n\
                Require stack:\n- /a.js\n    at b (c:1:2) {\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v22.20.0\n";
    assert_eq!(told(node), "exited with code 1: Error: Cannot find module 'x'");
    assert_eq!(told("oops\nBun v1.3.14"), "exited with code 1: oops");
    assert_eq!(told("Bun v1.3.14"), "exited with code 1: Bun v1.3.14", "better than nothing");
    assert_eq!(told("a: b\n  last\n\n"), "exited with code 1: last");
    assert_eq!(told(" \n"), "exited with code 1");
}
