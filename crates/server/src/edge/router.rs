//! The one router: which endpoint a path and method lead to, and what a request needs there before its body is read.
//!
//! Fronts come first. A2A takes what is left, because its paths at the root may begin with an agent's name.
//!
//! Where keys are required, which paths fronts have is told to callers with a key only: without one, a wrong method and a
//! path that looks like a front's get what an endpoint would. A2A's own paths are those of its specification.

use std::sync::Arc;

use http::{Method, Response};
use switchboard_engine::{Address, CallerRole};

use super::json_response;
use crate::Body;
use crate::bindings::routes::{self, Route};
use crate::front::{Access, Authorization, Front};

#[derive(Default)]
pub(crate) struct Router {
    fronts: Vec<Arc<dyn Front>>,
}

pub(super) enum Endpoint<'a> {
    A2a(Route),
    Front(&'a dyn Front),
    /// A2A only has other methods there: the `Allow` header, and the agent's address.
    WrongMethod(&'static str, Address),
    /// The front only has other methods there: the `Allow` header.
    WrongFrontMethod(&'static str, &'a dyn Front),
    /// Nothing is there; the front whose path it looks like, if it looks like one.
    Nothing(Option<&'a dyn Front>),
}

impl Router {
    pub(super) fn new(fronts: Vec<Arc<dyn Front>>) -> Self {
        Self { fronts }
    }

    /// What fronts say of themselves for `/openapi.json`.
    pub(crate) fn descriptions(&self) -> impl Iterator<Item = serde_json::Value> + '_ {
        self.fronts.iter().filter_map(|front| front.describe())
    }

    pub(super) fn find(&self, path: &str, method: &Method) -> (Endpoint<'_>, Access) {
        for front in &self.fronts {
            match front.find(path, method) {
                Some(Ok(access)) => return (Endpoint::Front(&**front), access),
                Some(Err(wrong)) => {
                    let access = access_beside(&**front, path, wrong.0);
                    return (Endpoint::WrongFrontMethod(wrong.0, &**front), access);
                }
                None => {}
            }
        }
        match routes::find(path, method) {
            Some(Ok(route)) => {
                let access = access(&route);
                (Endpoint::A2a(route), access)
            }
            Some(Err(routes::WrongMethod(allow, address))) => (Endpoint::WrongMethod(allow, address), Access::PUBLIC),
            None => match self.fronts.iter().find(|front| front.refuse_path(path).is_some()) {
                Some(front) => (Endpoint::Nothing(Some(&**front)), ANY_KEY),
                None => (Endpoint::Nothing(None), Access::PUBLIC),
            },
        }
    }
}

/// The response at a path where nothing is: that of the front whose path it looks like, else the server's.
pub(super) fn refuse_path(front: Option<&dyn Front>, path: &str) -> Response<Body> {
    front.and_then(|front| front.refuse_path(path)).unwrap_or_else(|| json_response::not_found(path))
}

/// What a request with another method needs: a key, unless one of the methods that are there is for everybody. Else it could
/// be found out without a key which paths there are.
fn access_beside(front: &dyn Front, path: &str, allow: &str) -> Access {
    let is_public = |method: Method| match front.find(path, &method) {
        Some(Ok(access)) => access.authorization == Authorization::Public,
        _ => false,
    };
    match allow.split(", ").filter_map(|method| method.parse().ok()).any(is_public) {
        true => Access::PUBLIC,
        false => ANY_KEY,
    }
}

const ANY_KEY: Access = Access::role(CallerRole::None);

/// JSON-RPC names its operation in the body, so whether it streams is not known here.
fn access(route: &Route) -> Access {
    match route {
        Route::Card(_) | Route::OpenApi => Access::PUBLIC,
        Route::Rpc(_) | Route::Rest(_) => Access::role(CallerRole::None).with_json(),
    }
}
