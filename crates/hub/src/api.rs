//! The hub's endpoints: one table of routes, each with its handler in a file of its own. What a route says of itself is
//! enforced before its handler runs and described in `/openapi.json`.

mod agent_cards;
mod agent_registrations;
mod agents;
mod alerts;
mod ask_human;
mod bus;
mod ceremonies;
mod ceremony_changes;
mod channels;
mod chat;
mod control_plane;
mod cron_preview;
mod detached;
mod dispatch;
mod error;
mod experiments;
mod feed;
mod fields;
mod flows;
mod health;
mod hitl;
mod inbox;
mod inbox_decide;
mod invocations;
mod mailbox;
mod openapi;
mod operator_message;
mod overview;
mod plan;
mod poll;
mod publish;
mod request;
mod route;
mod routes;
mod series;
mod subscribe;
mod summaries;
mod task_tree;
mod tasks;
mod tools;
mod topology;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{Method, Response};
use switchboard_a2a::Error;
use switchboard_server::{Access, Body, Exchange, Front, WrongMethod};

use self::error::ApiError;
pub(crate) use self::operator_message::MessageCounts;
use self::request::ApiRequest;
use self::route::{Route, Variables};
use crate::hub::HubState;

/// Every endpoint. A path with fewer variables goes before one with more.
const ROUTES: &[Route] = &[
    agents::LIST,
    agents::RUNTIME,
    agents::HEALTH,
    agents::SHOW,
    agent_registrations::ADD,
    agent_registrations::ADD_ENDPOINT,
    agent_registrations::UPDATE,
    agent_registrations::UPDATE_ENDPOINT,
    agent_registrations::REMOVE,
    agent_registrations::REMOVE_ENDPOINT,
    agent_cards::REFRESH,
    agent_cards::ACCEPT,
    agent_cards::PROBE,
    dispatch::ROUTE,
    tasks::LIST,
    invocations::ROUTE,
    tasks::SHOW,
    tasks::CANCEL,
    task_tree::ROUTE,
    chat::CHAT,
    chat::DELEGATE,
    poll::ROUTE,
    channels::LIST,
    channels::RECEIVE,
    mailbox::READ,
    mailbox::DRAIN,
    tools::LIST,
    tools::CALL,
    flows::LIST,
    flows::SHOW,
    inbox::LIST,
    inbox::SHOW,
    inbox_decide::ROUTE,
    hitl::PENDING,
    hitl::INPUT,
    ask_human::ROUTE,
    feed::ROUTE,
    subscribe::ROUTE,
    bus::HISTORY,
    bus::TOPOLOGY,
    operator_message::ROUTE,
    publish::ROUTE,
    alerts::ROUTE,
    health::ROUTE,
    series::ROUTE,
    topology::ROUTE,
    overview::ROUTE,
    control_plane::ROUTE,
    summaries::COST,
    summaries::CONFIDENCE,
    plan::ROUTE,
    experiments::LIST,
    experiments::ADD,
    experiments::REMOVE,
    routes::LIST,
    routes::ADD,
    routes::UPDATE,
    routes::REMOVE,
    ceremonies::LIST,
    ceremonies::SHOW,
    ceremonies::RUNS,
    ceremony_changes::CREATE,
    ceremony_changes::UPDATE,
    ceremony_changes::DELETE,
    ceremony_changes::RUN,
    cron_preview::ROUTE,
];

/// Below this nearly all endpoints are, and no agent.
const API: &str = "/api/";
/// What the paths of all endpoints begin with.
const BEGINNINGS: [&str; 2] = [API, "/publish"];

/// The hub's endpoints behind the server's guards.
pub(crate) struct ApiFront {
    pub(crate) hub: Arc<HubState>,
}

impl Front for ApiFront {
    fn name(&self) -> &'static str {
        "hub"
    }

    fn find(&self, path: &str, method: &Method) -> Option<Result<Access, WrongMethod>> {
        // Every request comes by here, and most are A2A's.
        if !BEGINNINGS.iter().any(|beginning| path.starts_with(beginning)) {
            return None;
        }
        let (route, _) = match route::find(ROUTES, path, method)? {
            Ok(found) => found,
            Err(allow) => return Some(Err(WrongMethod(allow))),
        };
        Some(Ok(route.access))
    }

    fn answer<'a>(&'a self, exchange: &'a mut Exchange) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move {
            let path = exchange.parts.uri.path().to_owned();
            let Some(Ok((route, variables))) = route::find(ROUTES, &path, &exchange.parts.method) else {
                return missing(&path);
            };
            match route.is_detached() {
                true => detached::respond(&self.hub, route, variables, exchange).await,
                false => respond(&self.hub, route, variables, exchange).await,
            }
        })
    }

    fn refuse(&self, path: &str, error: &Error) -> Response<Body> {
        error::protocol_refusal(route::style_at(ROUTES, path), error)
    }

    fn refuse_method(&self, path: &str, message: &str) -> Response<Body> {
        error::wrong_method(route::style_at(ROUTES, path), message)
    }

    fn refuse_path(&self, path: &str) -> Option<Response<Body>> {
        path.starts_with(API).then(|| missing(path))
    }

    fn describe(&self) -> Option<serde_json::Value> {
        Some(openapi::describe(ROUTES))
    }
}

/// 404: no endpoint is there.
fn missing(path: &str) -> Response<Body> {
    let missing = ApiError::NotFound(format!("nothing is at {path}; /openapi.json says what there is"));
    missing.response(route::style_at(ROUTES, path))
}

/// Has a route's handler answer a request.
async fn respond(
    hub: &Arc<HubState>,
    route: &'static Route,
    variables: Variables,
    exchange: &mut Exchange,
) -> Response<Body> {
    let request = match ApiRequest::read(hub, route, variables, exchange) {
        Ok(request) => request,
        Err(problem) => return problem.response(route.style),
    };
    let answered = (route.answer)(request).await;
    answered.unwrap_or_else(|problem| problem.response(route.style))
}

/// The method, path and query parameters of every endpoint, for tests of what all of them have in common.
#[doc(hidden)]
pub fn route_table() -> Vec<(Method, &'static str, Vec<&'static str>)> {
    let names = |route: &Route| route.parameters.iter().map(|parameter| parameter.name).collect();
    ROUTES.iter().map(|route| (route.method.clone(), route.path, names(route))).collect()
}
