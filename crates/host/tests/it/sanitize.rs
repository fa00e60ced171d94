//! What agents and users write, before it reaches a terminal, a log or a shell command that is shown.

use std::path::Path;

use switchboard_host::sanitize::{line, redact_passwords, shell_path, shell_word, text};

#[test]
fn nothing_is_left_that_a_terminal_obeys_and_passwords_are_not_repeated() {
    assert_eq!(text("a\tb\nc"), "a\tb\nc");
    assert_eq!(text("\u{1b}[2J\u{1b}]0;x\u{7}red\r\n\u{9b}31m\u{202e}"), "[2J]0;xred\n31m");
    assert_eq!(line(" a\n\u{1b}[31mb\tc "), "a [31mb c");
    let shown = redact_passwords("http://u:p@host/a@b cannot be called; 'https://p@q@x:1' and http://y/z@w");
    assert_eq!(shown, "http://***@host/a@b cannot be called; 'https://***@x:1' and http://y/z@w");
}

#[test]
fn a_word_stays_one_word() {
    assert_eq!(shell_word("https://agent.example/a2a?x"), "'https://agent.example/a2a?x'");
    assert_eq!(shell_word("0198-ab_C"), "0198-ab_C");
    assert_eq!(shell_word("$(rm -rf ~)'"), r"'$(rm -rf ~)'\'''");
    assert_eq!(shell_word(""), "''");
    assert_eq!(shell_path(Path::new("/srv/a  b/it's")), r"'/srv/a  b/it'\''s'");
}
