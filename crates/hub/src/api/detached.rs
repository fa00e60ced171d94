//! Requests that change something run in a task of their own, which goes on when the client hangs up or its key is revoked:
//! dropped between two writes, the registry would know less than the store, and the audit nothing of the act.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use futures_util::FutureExt;
use http::Response;
use switchboard_engine::store::StoreError;
use switchboard_server::{Body, Exchange};
use tokio::sync::oneshot;

use super::error::{self, ApiError};
use super::route::{Route, Variables};
use crate::hub::HubState;

/// Answers a request, and finishes it also if the response is not waited for. A shutdown waits for it.
pub(super) async fn respond(
    hub: &Arc<HubState>,
    route: &'static Route,
    variables: Variables,
    exchange: &mut Exchange,
) -> Response<Body> {
    let style = route.style;
    let mut exchange = match exchange.detach(|error| error::protocol_refusal(style, error)).await {
        Ok(exchange) => exchange,
        Err(refused) => return refused,
    };
    let (answer, answered) = oneshot::channel();
    let state = Arc::clone(hub);
    hub.engine.spawn(async move {
        let response = super::respond(&state, route, variables, &mut exchange);
        // Nobody may be left to take it.
        let _ = answer.send(AssertUnwindSafe(response).catch_unwind().await);
    });
    match answered.await {
        Ok(Ok(response)) => response,
        // A request that panicked is answered and counted by the server.
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => ApiError::Store(StoreError::Closed).response(style),
    }
}
