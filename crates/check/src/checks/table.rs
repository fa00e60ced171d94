//! Every check by its group and its name, in the order of the report, with the function that makes it.

use super::{Group, Run};
use crate::{card, errors, extensions, list, operations, push, security, streaming, version};

/// A group with its checks, each by its name.
pub(super) struct GroupChecks {
    pub(super) group: Group,
    pub(super) name: &'static str,
    pub(super) checks: Checks,
}

type Checks = &'static [(&'static str, Run)];

pub(super) static TABLE: [GroupChecks; 9] = [
    GroupChecks { group: Group::Card, name: "card", checks: CARD },
    GroupChecks { group: Group::Operations, name: "operations", checks: OPERATIONS },
    GroupChecks { group: Group::Errors, name: "errors", checks: ERRORS },
    GroupChecks { group: Group::List, name: "list", checks: LIST },
    GroupChecks { group: Group::Streaming, name: "streaming", checks: STREAMING },
    GroupChecks { group: Group::Version, name: "version", checks: VERSION },
    GroupChecks { group: Group::Extensions, name: "extensions", checks: EXTENSIONS },
    GroupChecks { group: Group::Push, name: "push", checks: PUSH },
    GroupChecks { group: Group::Security, name: "security", checks: SECURITY },
];

const CARD: Checks = &[
    ("card-media-type", Run::Agent(|agent| Box::pin(card::media_type(agent)))),
    ("card-members", Run::Agent(|agent| Box::pin(card::members(agent)))),
    ("card-lists", Run::Agent(|agent| Box::pin(card::lists(agent)))),
    ("card-members-v03", Run::Agent(|agent| Box::pin(card::members_v03(agent)))),
    ("card-interfaces", Run::Agent(|agent| Box::pin(card::interfaces(agent)))),
    ("card-versions", Run::Agent(|agent| Box::pin(card::versions(agent)))),
    ("card-skills", Run::Agent(|agent| Box::pin(card::skills(agent)))),
    ("card-v03-agrees", Run::Agent(|agent| Box::pin(card::v03_agrees(agent)))),
    ("card-reachable", Run::Interface(|interface| Box::pin(card::reachable(interface)))),
    ("card-caching", Run::Agent(|agent| Box::pin(card::caching(agent)))),
    ("card-unchanged", Run::Agent(|agent| Box::pin(card::unchanged(agent)))),
    ("card-security", Run::Agent(|agent| Box::pin(card::security::declared(agent)))),
    ("card-schemes", Run::Agent(|agent| Box::pin(card::security::schemes(agent)))),
    ("card-schemes-https", Run::Agent(|agent| Box::pin(card::security::https(agent)))),
    ("card-signatures", Run::Agent(|agent| Box::pin(card::signatures::signatures(agent)))),
    ("card-extended", Run::Interface(|interface| Box::pin(card::extended::given(interface)))),
    ("card-extended-guarded", Run::Interface(|interface| Box::pin(card::extended::guarded(interface)))),
    ("card-extended-undeclared", Run::Interface(|interface| Box::pin(card::extended::undeclared(interface)))),
];

const OPERATIONS: Checks = &[
    ("send-answered", Run::Interface(|interface| Box::pin(operations::answered(interface)))),
    ("send-media-type", Run::Interface(|interface| Box::pin(operations::media_type(interface)))),
    ("send-envelope", Run::Interface(|interface| Box::pin(operations::envelope(interface)))),
    ("send-in-time", Run::Interface(|interface| Box::pin(operations::in_time(interface)))),
    ("send-waits", Run::Interface(|interface| Box::pin(operations::waits(interface)))),
    ("send-returns-immediately", Run::Interface(|interface| Box::pin(operations::is_non_blocking(interface)))),
    ("task-members", Run::Interface(|interface| Box::pin(operations::task_members(interface)))),
    ("message-members", Run::Interface(|interface| Box::pin(operations::message_members(interface)))),
    ("get-task", Run::Interface(|interface| Box::pin(operations::get_task(interface)))),
    ("task-kept", Run::Interface(|interface| Box::pin(operations::kept(interface)))),
    ("send-to-ended", Run::Interface(|interface| Box::pin(operations::send_to_ended(interface)))),
    ("failed-task-ends", Run::Interface(|interface| Box::pin(operations::failed_task(interface)))),
    ("cancel-open", Run::Interface(|interface| Box::pin(operations::cancel::open(interface)))),
    ("cancel-final", Run::Interface(|interface| Box::pin(operations::cancel::is_final(interface)))),
    ("cancel-ends-streams", Run::Interface(|interface| Box::pin(operations::cancel::ends_streams(interface)))),
    ("get-no-history", Run::Interface(|interface| Box::pin(operations::history::none(interface)))),
    ("get-history-length", Run::Interface(|interface| Box::pin(operations::history::last(interface)))),
    ("get-history-negative", Run::Interface(|interface| Box::pin(operations::history::negative(interface)))),
];

const ERRORS: Checks = &[
    ("error-method-unknown", Run::Interface(|interface| Box::pin(errors::method_unknown(interface)))),
    ("error-params-invalid", Run::Interface(|interface| Box::pin(errors::params_invalid(interface)))),
    ("error-json-malformed", Run::Interface(|interface| Box::pin(errors::json_malformed(interface)))),
    ("error-request-invalid", Run::Interface(|interface| Box::pin(errors::request_invalid(interface)))),
    ("error-task-unknown", Run::Interface(|interface| Box::pin(errors::task_unknown(interface)))),
    ("error-cancel-unknown", Run::Interface(|interface| Box::pin(errors::cancel_unknown(interface)))),
    ("error-send-unknown", Run::Interface(|interface| Box::pin(errors::send_unknown(interface)))),
    ("error-cancel-ended", Run::Interface(|interface| Box::pin(errors::cancel_ended(interface)))),
    ("error-form", Run::Interface(|interface| Box::pin(errors::form::form(interface)))),
    ("error-info", Run::Interface(|interface| Box::pin(errors::form::info_rpc(interface)))),
    ("error-info-rest", Run::Interface(|interface| Box::pin(errors::form::info_rest(interface)))),
    ("error-media-type", Run::Interface(|interface| Box::pin(errors::form::media_type(interface)))),
    ("error-status", Run::Interface(|interface| Box::pin(errors::form::status(interface)))),
    ("error-status-rpc", Run::Interface(|interface| Box::pin(errors::form::status_rpc(interface)))),
];

const LIST: Checks = &[
    ("list-members", Run::Interface(|interface| Box::pin(list::members(interface)))),
    ("list-order", Run::Interface(|interface| Box::pin(list::order(interface)))),
    ("list-artifacts-absent", Run::Interface(|interface| Box::pin(list::artifacts_absent(interface)))),
    ("list-artifacts-asked", Run::Interface(|interface| Box::pin(list::artifacts_asked(interface)))),
    ("list-page-size", Run::Interface(|interface| Box::pin(list::page_size(interface)))),
    ("list-pages", Run::Interface(|interface| Box::pin(list::pages(interface)))),
    ("list-cursor", Run::Interface(|interface| Box::pin(list::cursor(interface)))),
    ("list-context", Run::Interface(|interface| Box::pin(list::context(interface)))),
    ("list-status", Run::Interface(|interface| Box::pin(list::filters::status(interface)))),
    ("list-after", Run::Interface(|interface| Box::pin(list::filters::after(interface)))),
    ("list-no-history", Run::Interface(|interface| Box::pin(list::filters::no_history(interface)))),
    ("list-token-unknown", Run::Interface(|interface| Box::pin(list::filters::token_unknown(interface)))),
];

const STREAMING: Checks = &[
    ("stream-media-type", Run::Interface(|interface| Box::pin(streaming::media_type(interface)))),
    ("stream-undeclared", Run::Interface(|interface| Box::pin(streaming::undeclared(interface)))),
    ("stream-first", Run::Interface(|interface| Box::pin(streaming::first(interface)))),
    ("stream-events", Run::Interface(|interface| Box::pin(streaming::events(interface)))),
    ("stream-envelope", Run::Interface(|interface| Box::pin(streaming::envelope(interface)))),
    ("stream-end-last", Run::Interface(|interface| Box::pin(streaming::end_last(interface)))),
    ("stream-closes", Run::Interface(|interface| Box::pin(streaming::closes(interface)))),
    ("stream-final", Run::Interface(|interface| Box::pin(streaming::is_final(interface)))),
    ("stream-whole", Run::Interface(|interface| Box::pin(streaming::whole(interface)))),
    ("stream-matches-task", Run::Interface(|interface| Box::pin(streaming::matches_task(interface)))),
    ("stream-unbuffered", Run::Interface(|interface| Box::pin(streaming::transport::unbuffered(interface)))),
    ("stream-keep-alive", Run::Interface(|interface| Box::pin(streaming::transport::keep_alive(interface)))),
    ("stream-left", Run::Interface(|interface| Box::pin(streaming::subscribe::goes_on(interface)))),
    ("subscribe-unknown", Run::Interface(|interface| Box::pin(streaming::subscribe::unknown(interface)))),
    ("subscribe-ended", Run::Interface(|interface| Box::pin(streaming::subscribe::ended(interface)))),
    ("subscribe-open", Run::Interface(|interface| Box::pin(streaming::subscribe::open(interface)))),
    ("subscribe-follows", Run::Interface(|interface| Box::pin(streaming::subscribe::follows(interface)))),
    ("subscribe-twice", Run::Interface(|interface| Box::pin(streaming::subscribe::twice(interface)))),
    ("subscribe-resumes", Run::Interface(|interface| Box::pin(streaming::subscribe::resumes(interface)))),
];

const VERSION: Checks = &[
    ("version-unknown", Run::Interface(|interface| Box::pin(version::unknown(interface)))),
    ("version-minor", Run::Interface(|interface| Box::pin(version::minor(interface)))),
    ("version-malformed", Run::Interface(|interface| Box::pin(version::malformed(interface)))),
    ("version-patch", Run::Interface(|interface| Box::pin(version::patch(interface)))),
    ("version-absent", Run::Interface(|interface| Box::pin(version::absent(interface)))),
    ("version-old-callers", Run::Interface(|interface| Box::pin(version::old_callers(interface)))),
];

const EXTENSIONS: Checks = &[
    ("extension-required", Run::Interface(|interface| Box::pin(extensions::required(interface)))),
    ("extension-declared", Run::Interface(|interface| Box::pin(extensions::declared(interface)))),
    ("extension-echoed", Run::Interface(|interface| Box::pin(extensions::echoed(interface)))),
];

const PUSH: Checks = &[
    ("push-undeclared", Run::Interface(|interface| Box::pin(push::undeclared(interface)))),
    ("push-round-trip", Run::Interface(|interface| Box::pin(push::round_trip(interface)))),
    ("push-delete-result", Run::Interface(|interface| Box::pin(push::delete_result(interface)))),
    ("push-delivered", Run::Interface(|interface| Box::pin(push::delivered::delivered(interface)))),
    ("push-payload", Run::Interface(|interface| Box::pin(push::delivered::payload(interface)))),
    ("push-unknown-task", Run::Interface(|interface| Box::pin(push::unknown::unknown_task(interface)))),
    ("push-unknown-config", Run::Interface(|interface| Box::pin(push::unknown::unknown_config(interface)))),
    ("push-delete-again", Run::Interface(|interface| Box::pin(push::unknown::delete_again(interface)))),
    ("push-not-waited-for", Run::Interface(|interface| Box::pin(push::slow_receiver::not_waited_for(interface)))),
];

const SECURITY: Checks = &[
    ("security-tls", Run::Interface(|interface| Box::pin(security::tls(interface)))),
    ("security-enforced", Run::Interface(|interface| Box::pin(security::enforced(interface)))),
    ("security-wrong", Run::Interface(|interface| Box::pin(security::wrong(interface)))),
    ("security-challenge", Run::Interface(|interface| Box::pin(security::challenge(interface)))),
    ("security-foreign-task", Run::Interface(|interface| Box::pin(security::foreign_task(interface)))),
    ("security-other-read", Run::Interface(|interface| Box::pin(security::second_caller::read(interface)))),
    ("security-other-list", Run::Interface(|interface| Box::pin(security::second_caller::list(interface)))),
    ("security-other-cancel", Run::Interface(|interface| Box::pin(security::second_caller::cancel(interface)))),
    ("security-other-subscribe", Run::Interface(|interface| Box::pin(security::second_caller::subscribe(interface)))),
    ("security-other-answer", Run::Interface(|interface| Box::pin(security::second_caller::answer(interface)))),
    ("security-other-webhooks", Run::Interface(|interface| Box::pin(security::second_caller::webhooks(interface)))),
];
