//! Lines of command-line agents: none may do harm, whichever program they are said to come from, and every turn ends.

use switchboard_cli_agents::adapters::{
    Acp, Adapter, ClaudeCode, Codex, Cursor, Decision, Event, Exit, Gemini, Opencode, Order, Permission, Permissions,
    Session, Step, Steps,
};

/// Plays the lines to each program's dialogue, answering what it asks.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let adapters: [&dyn Adapter; 7] =
        [&ClaudeCode, &Codex, &Cursor, &Gemini, &Opencode, &Acp::gemini(), &Acp::any("any", "any", Vec::new())];
    for adapter in adapters {
        for default in [Permission::Ask, Permission::Allow] {
            play(adapter, default, &text);
        }
    }
}

fn play(adapter: &dyn Adapter, default: Permission, text: &str) {
    let order = Order {
        prompt: "do it".to_owned(),
        session: Session::New("c7e4b0b6-8a25-4d52-9f5e-0d1f6a1b2c3d".to_owned()),
        cwd: "/".into(),
        model: None,
        effort: None,
        permissions: Permissions { default, ..Permissions::default() },
        args: Vec::new(),
    };
    let Ok((_, mut dialogue)) = adapter.start(&order) else { return };
    let mut steps = Steps::default();
    dialogue.begin(&mut steps);
    let mut has_ended = false;
    for (number, line) in text.lines().enumerate() {
        dialogue.line(line, &mut steps);
        for step in steps.take() {
            match step {
                Step::Event(Event::ApprovalRequired(approval)) => {
                    let reason = Some("no".to_owned());
                    let decision = if number % 2 == 0 { Decision::Allow } else { Decision::Deny { reason } };
                    dialogue.decide(&approval.request, &decision, &mut steps);
                    dialogue.decide(&approval.request, &decision, &mut steps);
                }
                Step::Write(line) => assert!(!line.contains('\n'), "two lines: {line:?}"),
                Step::Finish(_) => has_ended = true,
                Step::Event(_) | Step::CloseInput => {}
            }
        }
    }
    dialogue.interrupt(&mut steps);
    dialogue.ended(&Exit { code: Some(0), ..Exit::default() }, &mut steps);
    has_ended |= steps.take().iter().any(|step| matches!(step, Step::Finish(_)));
    assert!(has_ended, "{} never ended", adapter.about().name);
}
