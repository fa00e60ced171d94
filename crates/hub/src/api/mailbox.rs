//! `/api/mailbox/{contextId}`: what was said in a channel while its agent works. Whose conversation it is may read it, and the
//! agent that works on it; either may take it out.

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use switchboard_a2a::{ContextId, Part};
use switchboard_engine::fold::NumberedMessage;
use switchboard_engine::store::{Conversation, Phase};
use switchboard_server::Body;

use super::error::ApiError;
use super::request::ApiRequest;
use super::route::Route;
use crate::tasks::channel::joined::{Origin, bytes};
use crate::tasks::channel::mailboxes::Mailbox;
use crate::tasks::channel_plan::CHANNEL;

pub(super) const READ: Route =
    Route::get("/api/mailbox/{contextId}", "Read what waits in a channel's conversation", |request| {
        Box::pin(read(request))
    })
    .for_tasks()
    .enveloped();
pub(super) const DRAIN: Route = Route::new(
    Method::POST,
    "/api/mailbox/{contextId}:drain",
    "Take out what waits in a channel's conversation, while its agent works",
    |request| Box::pin(drain(request)),
)
.body(&[])
.for_tasks()
.refusals(&[(409, "NOT_RUNNING")])
.enveloped();

async fn read(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    let unread = match Reader::find(&request).await? {
        Reader::Open(mailbox) => mailbox.task().unread(),
        Reader::Closed(Some(task)) => request.hub.engine.unread(&task).await?,
        Reader::Closed(None) => Vec::new(),
    };
    answer(&mut request, &unread).await
}

async fn drain(mut request: ApiRequest<'_>) -> Result<Response<Body>, ApiError> {
    request.no_members().await?;
    let not_running = || ApiError::Conflict {
        status: StatusCode::CONFLICT,
        code: "NOT_RUNNING",
        message: "the agent of this conversation does not work on it here just now: what waits is handed to it next"
            .to_owned(),
        more: json!({}),
    };
    let Reader::Open(mailbox) = Reader::find(&request).await? else { return Err(not_running()) };
    // What was taken cannot be taken again, so there is room for the answer first.
    request.reserve(total(&mailbox.task().unread())).await?;
    let taken = mailbox.drain().await.ok_or_else(not_running)?;
    let answer = request.answer(StatusCode::OK, &shown(&taken));
    Ok(answer)
}

/// Where a caller's conversation stands.
enum Reader {
    /// Its agent works, and the turn is here.
    Open(Mailbox),
    /// It does not; the task of the conversation, if it goes on.
    Closed(Option<switchboard_a2a::TaskId>),
}

impl Reader {
    /// Of the conversation that a request names. One of another caller is not there.
    async fn find(request: &ApiRequest<'_>) -> Result<Self, ApiError> {
        let context = ContextId::from(request.variable("contextId"));
        let missing = || ApiError::NotFound(format!("there is no conversation {context} of a channel"));
        let mailboxes = &request.hub.channels.mailboxes;
        if let Some(calling) = request.caller().calling_task() {
            // A task token reads for the channel's task that has called its own.
            let open = mailboxes.find(calling.caller(), &context);
            return open.filter(|open| calling.is_child_of(open.task())).map(Self::Open).ok_or_else(missing);
        }
        let owner = request.caller().id.clone();
        if let Some(open) = mailboxes.find(&owner, &context) {
            return Ok(Self::Open(open));
        }
        let of = Conversation { owner, agent: CHANNEL.into(), context: context.clone() };
        let row = request.hub.parts.store.context(of, 1).await?.pop().ok_or_else(missing)?;
        Ok(Self::Closed((row.state.phase != Phase::Done).then_some(row.task.id)))
    }
}

async fn answer(request: &mut ApiRequest<'_>, unread: &[NumberedMessage]) -> Result<Response<Body>, ApiError> {
    request.reserve(total(unread)).await?;
    request.answer_reserved(StatusCode::OK, shown(unread)).await
}

fn total(unread: &[NumberedMessage]) -> u64 {
    unread.iter().map(|message| bytes(&message.received.message) as u64).sum()
}

fn shown(unread: &[NumberedMessage]) -> Value {
    let one = |numbered: &NumberedMessage| {
        let message = &numbered.received.message;
        let mut shown = json!({ "text": message.joined_text(), "at": numbered.received.at });
        let user = Origin::of(message).and_then(|origin| origin.users.into_iter().next());
        if let Some(user) = user {
            shown["user"] = user.into();
        }
        // A text is all there is of most.
        if !message.parts.iter().all(Part::is_bare_text) {
            shown["parts"] = serde_json::to_value(&message.parts).unwrap_or_default();
        }
        shown
    };
    json!({ "messages": unread.iter().map(one).collect::<Vec<_>>() })
}
