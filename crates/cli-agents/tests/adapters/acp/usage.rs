//! Tokens and money.

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::{Event, Order, Scope, Session, Usage};

use super::{Run, events, order, resume};

/// The last usage of a turn with these updates and this result.
fn usage(order: &Order, update: &Value, result: Value) -> Option<Usage> {
    let mut run = Run::begin(order);
    run.answer(1, json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}));
    run.answer(2, json!({"sessionId": "s"}));
    let mut update = update.clone();
    update["sessionUpdate"] = "usage_update".into();
    run.take();
    let session = if matches!(order.session, Session::New(_)) { "s" } else { "old" };
    let update = json!({"method": "session/update", "params": {"sessionId": session, "update": update}});
    let mut steps = run.say(update);
    run.answer(3, result);
    steps.extend(run.take());
    let mut usages = events(&steps).into_iter().filter_map(|event| match event {
        Event::Usage(usage) => Some(*usage),
        _ => None,
    });
    usages.next_back()
}

#[test]
fn counts_that_do_not_overlap_are_added_and_money_is_that_of_a_new_session() {
    let result = || {
        json!({"stopReason": "end_turn", "usage": {"inputTokens": 11, "outputTokens": 7, "cachedReadTokens": 3,
            "cachedWriteTokens": 2, "thoughtTokens": 4, "totalTokens": 27}})
    };
    let update = json!({"cost": {"amount": 0.5, "currency": "USD"}});
    let expected = Usage {
        scope: Scope::Run,
        input_tokens: 16,
        cached_tokens: 3,
        output_tokens: 11,
        reasoning_tokens: 4,
        cost_usd: Some(0.5),
    };
    assert_eq!(usage(&order("Work."), &update, result()), Some(expected));
    let resumed = usage(&resume("old", "Work."), &update, result());
    assert_eq!(resumed, Some(Usage { cost_usd: None, ..expected }));
}

#[test]
fn zeros_other_money_and_nonsense_are_not_told() {
    for update in [
        json!({"cost": {"amount": 0, "currency": "USD"}}),
        json!({"cost": {"amount": 3, "currency": "credits"}}),
        json!({"cost": {"amount": -1, "currency": "USD"}}),
        json!({"cost": "much"}),
    ] {
        for result in [json!({"usage": {"inputTokens": 0}}), json!({"usage": 7, "_meta": []})] {
            assert_eq!(usage(&order("Work."), &update, result), None, "{update}");
        }
    }
    let huge = json!({"usage": {"inputTokens": u64::MAX, "cachedReadTokens": 9}});
    let told = usage(&order("Work."), &json!({}), huge);
    assert_eq!(told.map(|usage| usage.input_tokens), Some(u64::MAX));
}
