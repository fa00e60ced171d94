//! What cards say about webhooks is true.

use crate::bindings::dialects::{ALL, Operation};
use crate::bindings::world::Plan;

#[tokio::test]
async fn every_card_says_whether_webhooks_can_be_set() {
    let plans = [Plan::with_keys().0, Plan::with_keys().0.and_webhooks(), Plan::with_keys().0.and_webhooks()];
    for (number, mut plan) in plans.into_iter().enumerate() {
        if number == 2 {
            plan.webhooks.as_mut().unwrap().0.enabled = false;
        }
        let (world, expected) = (plan.start().await, number == 1);
        for path in ["/.well-known/agent-card.json", "/a2a/talker/.well-known/agent-card.json"] {
            for version in ["", "1.0", "0.3"] {
                let card = world.get(path).version(version).reply().await.json();
                assert_eq!(card["capabilities"]["pushNotifications"], expected, "{number} {path} {version:?}");
            }
        }
        for dialect in ALL {
            let card = dialect.ask(&world, "", Operation::ExtendedCard).key("ann").reply().await;
            assert_eq!(dialect.result(&card)["capabilities"]["pushNotifications"], expected, "{number} {dialect:?}");
        }
    }
}
