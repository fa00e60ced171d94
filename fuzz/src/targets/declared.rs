//! Descriptions of programs, which users write: read or refused, never worse.

use switchboard_cli_agents::adapters::{Adapter, Declared, Exit, Order, Permission, Permissions, Session, Steps};

/// Reads a description, and has a turn with a program of that kind.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(declared) = Declared::parse(&text, "adapter.yaml") else { return };
    let order = Order {
        prompt: "-- do it".to_owned(),
        session: Session::New("c7e4b0b6-8a25-4d52-9f5e-0d1f6a1b2c3d".to_owned()),
        cwd: "/".into(),
        model: Some("m".to_owned()),
        effort: None,
        permissions: Permissions { default: Permission::Allow, ..Permissions::default() },
        args: vec!["--more".to_owned()],
    };
    let Ok((launch, mut dialogue)) = declared.start(&order) else { return };
    assert!(launch.args.iter().all(|argument| !argument.contains('\0')));
    let mut steps = Steps::default();
    dialogue.begin(&mut steps);
    for line in ["{\"type\":\"assistant\",\"message\":{\"content\":[{\"text\":\"hi\"}]}}", "text", "[1,2", "{}"] {
        dialogue.line(line, &mut steps);
    }
    dialogue.ended(&Exit { code: Some(0), ..Exit::default() }, &mut steps);
}
