//! Cards are kept, the agents that they describe are not.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_engine::{Address, AgentName, Caller, Directory, Error, Hosted, Replies, Resolved, RoutingRequest};
use tokio::sync::Semaphore;

use super::agents::{Obedient, manifest};
use super::world::Plan;

/// Agents that come and go.
#[derive(Default)]
struct Changing(Mutex<BTreeMap<AgentName, Arc<Hosted>>>);

impl Changing {
    fn add(&self, name: &str) -> Arc<Hosted> {
        let agent = Obedient { manifest: manifest(name, Replies::Task), gate: Arc::new(Semaphore::new(0)) };
        let hosted = Arc::new(Hosted::new(name, agent));
        self.0.lock().insert(name.into(), hosted.clone());
        hosted
    }
}

impl Directory for Changing {
    fn resolve(&self, address: &Address, _: &Caller, _: Option<RoutingRequest<'_>>) -> Result<Resolved, Error> {
        let found = match address {
            Address::Agent(name) => self.find(name),
            Address::Root => None,
        };
        let missing = || Error::AgentNotFound { asked: address.as_str().to_owned(), known: Vec::new() };
        found.map(Resolved::new).ok_or_else(missing)
    }

    fn find(&self, name: &AgentName) -> Option<Arc<Hosted>> {
        self.0.lock().get(name).cloned()
    }

    fn agents(&self) -> Vec<Arc<Hosted>> {
        self.0.lock().values().cloned().collect()
    }
}

#[tokio::test]
async fn the_cards_of_agents_that_were_removed_keep_nothing_of_them() {
    let agents = Arc::new(Changing::default());
    let world = Plan { directory: Some(agents.clone()), ..Plan::default() }.start().await;
    let card = |name: &str| format!("/a2a/{name}/.well-known/agent-card.json");
    let mut gone = Vec::new();
    for number in 0..10 {
        let name = format!("agent-{number}");
        let hosted = agents.add(&name);
        for version in ["1.0", "0.3"] {
            let reply = world.get(&card(&name)).version(version).reply().await;
            assert_eq!((reply.status, &reply.json()["name"]), (200, &serde_json::json!(name)));
        }
        gone.push((Arc::downgrade(&hosted), Arc::downgrade(&hosted.served())));
    }
    agents.0.lock().clear();
    agents.add("stays");
    assert_eq!(world.get(&card("stays")).reply().await.status, 200);
    for (number, (hosted, served)) in gone.iter().enumerate() {
        assert_eq!((hosted.strong_count(), served.strong_count()), (0, 0), "agent-{number}");
    }
    assert_eq!(world.get(&card("agent-0")).reply().await.status, 404);
    // One that is served anew has a new card, though its name is the same.
    let again = agents.add("stays");
    let mut changed = manifest("stays", Replies::Task);
    changed.description = "Another one".to_owned();
    again.replace(switchboard_engine::Served::new(Obedient { manifest: changed, gate: Arc::new(Semaphore::new(0)) }));
    let reply = world.get(&card("stays")).reply().await;
    assert_eq!(reply.json()["description"], "Another one");
}
