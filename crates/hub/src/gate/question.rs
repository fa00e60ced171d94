//! The question of a gate: what is to begin, for which request, and what comes of silence. Reviewers get it as text and as data.

use serde_json::json;
use switchboard_a2a::{Json, Message, Part, Role, Timestamp};
use switchboard_engine::clock::later;
use switchboard_engine::{ExpiryAction, Review, Reviewer, Seq, TaskHandle};

use super::policies::Wanted;

/// The note on an answer of the caller's that decides nothing.
pub(super) const NO_DECISION: &str = "That decides nothing: answer approve, or reject with a reason.";

/// So much of a request's text is repeated, in bytes. The whole of it is in the task.
const REQUEST_BYTES: usize = 4 << 10;
/// So many characters of a skill's name are: it is the caller's to choose.
const SKILL_CHARACTERS: usize = 60;

/// Who answers it, until when, and what happens then.
pub(super) fn review(wanted: &Wanted<'_>, turn: Seq, now: Timestamp) -> Review {
    let (ttl, then) = wanted.review.expiry();
    Review {
        skill: wanted.skill.clone(),
        mode: Some(wanted.review.mode.name().to_owned()),
        radius: wanted.review.radius.map(|radius| radius.name().to_owned()),
        expires_at: Some(later(now, ttl)),
        then,
        ..Review::by(wanted.review.reviewer, turn)
    }
}

/// The question in words.
pub(super) fn message(
    wanted: &Wanted<'_>,
    review: &Review,
    request: &Message,
    task: &TaskHandle,
    note: Option<&str>,
) -> Message {
    let skills = match wanted.named.len() {
        0 => "a request that names no skill".to_owned(),
        _ => wanted.named.iter().map(|skill| shown(skill)).collect::<Vec<_>>().join(", "),
    };
    let title = format!("Approve {skills} of agent {}?", task.agent());
    let text = request.joined_text();
    let repeated = visible(&text[..text.floor_char_boundary(REQUEST_BYTES)]);
    let rest = match (repeated.is_empty(), text.len() > REQUEST_BYTES) {
        (true, _) => "The request has no text.".to_owned(),
        (false, true) => format!("{repeated} …\n(The rest of the request is in the task.)"),
        (false, false) => repeated,
    };
    let after = match review.then {
        ExpiryAction::Approve => "it begins",
        ExpiryAction::Escalate => "the question is escalated, and stays open,",
        ExpiryAction::Reject | ExpiryAction::Fail => "the task is rejected",
    };
    let expires_at = review.expires_at.map(|at| at.to_string()).unwrap_or_default();
    let text = [note.unwrap_or_default(), &title, &rest, &format!("Without a decision {after} at {expires_at}.")];
    let text = text.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
    let options = match review.reviewer {
        Reviewer::Operator => json!(["approve", "reject", "modify"]),
        Reviewer::Caller => json!(["approve", "reject"]),
    };
    let data = json!({
        "type": "hitl_request", "title": title, "agent": task.agent().as_str(), "skill": review.skill,
        "mode": review.mode, "radius": review.radius, "options": options, "expiresAt": expires_at,
        "parts": request.parts.len(),
    });
    let mut question = Message::text(Role::Agent, text);
    question.parts.extend(Json::from_serialize(&data).ok().map(Part::data));
    question
}

fn shown(skill: &str) -> String {
    let shown: String = visible(skill).chars().take(SKILL_CHARACTERS).collect();
    format!("{shown:?}")
}

/// The text without what a reader would not see, or would see in another order.
fn visible(text: &str) -> String {
    let is_hidden = |character: char| {
        let is_format = matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
            || matches!(character, '\u{feff}' | '\u{00ad}' | '\u{e0000}'..='\u{e007f}');
        is_format || (character.is_control() && !matches!(character, '\n' | '\t'))
    };
    text.chars().map(|character| if is_hidden(character) { '\u{fffd}' } else { character }).collect()
}
