//! Lines that make no sense.

use std::fs;
use std::path::Path;

use serde_json::json;
use switchboard_cli_agents::adapters::Exit;

use super::*;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }
}

fn recorded() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let claude = files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("claude-"));
    let texts: Vec<String> = claude.map(|path| fs::read_to_string(path).unwrap()).collect();
    texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("<< ")).map(str::to_owned).collect()
}

/// Whether a dialogue that was fed something still does its duty: it ends, once.
fn assert_ends(dialogue: &mut dyn Dialogue, mut steps: Steps) {
    dialogue.interrupt(&mut steps);
    dialogue.ended(&Exit::default(), &mut steps);
    let endings = steps.take().iter().filter(|step| matches!(step, Step::Finish(_))).count();
    assert_eq!(endings, 1);
}

#[test]
fn lines_that_are_cut_or_damaged_do_no_harm() {
    let mut dice = Dice(7);
    for line in recorded() {
        let (mut dialogue, mut steps) = (dialogue(), Steps::default());
        for part in [1, 3, 7, 13] {
            let cut = line.floor_char_boundary(line.len() * part / 14);
            dialogue.line(&line[..cut], &mut steps);
            dialogue.line(&line[cut..], &mut steps);
        }
        let mut bytes = line.into_bytes();
        for _ in 0..8 {
            let at = dice.roll(bytes.len());
            bytes[at] = u8::try_from(dice.roll(256)).unwrap();
            dialogue.line(&String::from_utf8_lossy(&bytes), &mut steps);
        }
        assert_ends(dialogue.as_mut(), steps);
    }
}

#[test]
fn members_of_another_kind_than_expected_do_no_harm() {
    let others =
        [json!(null), json!(7), json!(-1.5), json!("x"), json!([]), json!([[7]]), json!({}), json!({"type": "text"})];
    let mut dice = Dice(11);
    for line in recorded() {
        let (mut dialogue, mut steps) = (dialogue(), Steps::default());
        let whole: Value = serde_json::from_str(&line).unwrap();
        for _ in 0..8 {
            let mut damaged = whole.clone();
            damage(&mut damaged, &others, &mut dice);
            dialogue.line(&damaged.to_string(), &mut steps);
        }
        assert_ends(dialogue.as_mut(), steps);
    }
}

/// Puts something else somewhere into a value.
fn damage(value: &mut Value, others: &[Value], dice: &mut Dice) {
    let inner = match value {
        Value::Object(members) if !members.is_empty() && dice.roll(4) > 0 => {
            let at = dice.roll(members.len());
            members.values_mut().nth(at)
        }
        Value::Array(items) if !items.is_empty() && dice.roll(4) > 0 => {
            let at = dice.roll(items.len());
            items.get_mut(at)
        }
        _ => None,
    };
    match inner {
        Some(inner) => damage(inner, others, dice),
        None => *value = others[dice.roll(others.len())].clone(),
    }
}

#[test]
fn noise_and_what_is_not_known_is_ignored() {
    let (mut dialogue, mut steps) = (dialogue(), Steps::default());
    let mut dice = Dice(3);
    for length in 0..300 {
        let bytes: Vec<u8> = (0..length).map(|_| u8::try_from(dice.roll(256)).unwrap()).collect();
        dialogue.line(&String::from_utf8_lossy(&bytes), &mut steps);
    }
    for line in [
        "",
        "{}",
        "[]",
        "null",
        "true",
        "{\"type\":7}",
        "{\"type\":\"new\"}",
        "No conversation found",
        "{\"type\":\"system\"}",
    ] {
        dialogue.line(line, &mut steps);
    }
    dialogue.line(&"[".repeat(100_000), &mut steps);
    dialogue.line(&"{\"type\":".repeat(100_000), &mut steps);
    dialogue.decide("nothing", &allow(), &mut steps);
    assert_eq!(steps.take(), []);
}

#[test]
fn a_message_whose_content_is_a_text_is_read_too() {
    let message = json!({"id": "m", "content": "hello"});
    let said = hear(dialogue().as_mut(), &[json!({"type": "assistant", "message": message})]);
    assert_eq!(said, [Step::Event(Event::Text { text: "hello".to_owned() })]);
    let replayed = json!({"type": "user", "message": {"content": "<local-command-stdout>x</local-command-stdout>"}});
    assert_eq!(hear(dialogue().as_mut(), &[replayed]), []);
}

#[test]
fn an_answer_of_a_tool_that_was_never_called_is_told() {
    let block = json!({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "out"}]});
    let told = hear(dialogue().as_mut(), &[json!({"type": "user", "message": {"content": [block]}})]);
    let output = "out".to_owned();
    let result = Event::ToolResult { id: "t".to_owned(), tool: String::new(), output, is_error: false };
    assert_eq!(told, [Step::Event(result)]);
}
