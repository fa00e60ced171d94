//! `GET /api/topology`: who calls whom, as a graph, from the sums of the last 24 hours by caller.

use std::collections::{BTreeMap, BTreeSet};

use http::{Response, StatusCode};
use serde_json::{Value, json};
use switchboard_engine::store::hub::HealthBy;
use switchboard_engine::{AgentName, CallerId, CallerRole};
use switchboard_server::Body;

use super::error::ApiError;
use super::request::ApiRequest;
use super::route::Route;
use crate::feed::View;
use crate::health::{Sum, Window};

pub(super) const ROUTE: Route = Route::get("/api/topology", "Who calls whom, in the last 24 hours", |request| {
    Box::pin(async move { answer(&request) })
})
.role(CallerRole::Viewer);

/// Something that calls or is called. Its text is its id in the answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Caller(String),
    Agent(String),
}

impl Node {
    /// The owner of a task. One that an agent has called belongs to `~AGENT@PAYER`.
    fn of_owner(owner: &str) -> Self {
        match owner.strip_prefix('~').and_then(|called| called.split_once('@')) {
            Some((agent, _)) => Self::Agent(agent.to_owned()),
            None => Self::Caller(owner.to_owned()),
        }
    }

    fn id(&self) -> String {
        match self {
            Self::Caller(name) => format!("caller:{name}"),
            Self::Agent(name) => format!("agent:{name}"),
        }
    }
}

fn answer(request: &ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let hub = request.hub;
    let view = View::of(request.caller());
    let sums = hub.health.read().window(hub.parts.clock.now(), Window::Day, HealthBy::Caller);
    let roster = hub.registry.roster();
    let served = hub.engine.directory().agents().into_iter().map(|hosted| hosted.name.to_string());
    let sees = |agent: &str| view.sees_agent(&AgentName::from(agent));
    let mut nodes: BTreeSet<Node> = served.filter(|agent| sees(agent)).map(Node::Agent).collect();
    // An agent may call for several callers: that is one edge.
    let mut edges: BTreeMap<(Node, Node), Sum> = BTreeMap::new();
    for ((agent, owner), sum) in sums {
        let from = Node::of_owner(&owner);
        let is_shown = matches!(&from, Node::Caller(_)) || matches!(&from, Node::Agent(agent) if sees(agent));
        if sees(&agent) && is_shown {
            edges.entry((from, Node::Agent(agent))).or_default().merge(&sum);
        }
    }
    nodes.extend(edges.keys().flat_map(|(from, to)| [from.clone(), to.clone()]));
    let shown = |node: &Node| {
        let (kind, name) = match node {
            Node::Caller(name) => ("caller", name),
            Node::Agent(name) if roster.entry(name).is_some_and(|entry| entry.remote.is_some()) => ("remote", name),
            Node::Agent(name) => ("agent", name),
        };
        let mut shown = json!({ "id": node.id(), "kind": kind, "name": name });
        if let Node::Caller(caller) = node
            && let Some(key) = hub.parts.callers.name(&CallerId::from(caller.as_str()))
        {
            shown["keyName"] = key.into();
        }
        shown
    };
    let hours = Window::Day.duration().as_secs_f64() / 3_600.0;
    let edge = |((from, to), sum): (&(Node, Node), &Sum)| {
        let (rate, errors) = (sum.outcomes as f64 / hours, sum.failures());
        json!({ "from": from.id(), "to": to.id(), "outcomes": sum.outcomes, "rate": rate, "errors": errors })
    };
    let nodes: Vec<Value> = nodes.iter().map(shown).collect();
    let edges: Vec<Value> = edges.iter().map(edge).collect();
    Ok(request.answer(StatusCode::OK, &json!({ "nodes": nodes, "edges": edges })))
}
