//! Every recording, step by step, as it was found to make sense.

use std::fs;
use std::path::Path;

use switchboard_cli_agents::adapters::cut;

use super::*;

#[test]
fn every_recording_is_told_as_it_was_found_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("claude-") && !name.starts_with("claude-agent-acp"));
    names.sort();
    assert!(names.len() > 60, "{names:?}");
    for name in names {
        let decision = if name.contains("deny") { deny("Denied by the hub") } else { allow() };
        let (_, mut dialogue) = start(&Order { permissions: deny_hook::of(&name), ..order() }).unwrap();
        let played = play_to(dialogue.as_mut(), &name, &[decision.clone(), decision]);
        assert!(matches!(played.steps.last(), Some(Step::Finish(_))), "{name} does not end");
        let step = |step: &Step| cut(&serde_json::to_string(step).unwrap(), 300).into_owned();
        let steps: Vec<String> = played.steps.iter().map(step).collect();
        insta::assert_snapshot!(name.trim_end_matches(".txt"), steps.join("\n"));
    }
}
