//! The dialogue of one run, from `initialize` to the end of the turn.
//!
//! One request is open at a time: `initialize`, then a session is created or resumed, then model and effort are set,
//! then the prompt is sent. Only updates after the prompt are passed on.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AGENT_METHOD_NAMES, AgentCapabilities, CLIENT_METHOD_NAMES, CancelNotification, ClientCapabilities, ContentBlock,
    Error, Implementation, InitializeRequest, LoadSessionRequest, NewSessionRequest, PROTOCOL_LEVEL_METHOD_NAMES,
    PromptRequest, RequestId, ResumeSessionRequest, SetSessionModeRequest, StopReason, TextContent,
};
use serde::Serialize;
use serde_json::Value;

use super::errors;
use super::message::{self, Incoming};
use super::permission_requests::{self, PermissionRequests};
use super::session_settings::{SessionSetting, SessionSettings};
use super::updates::Updates;
use crate::adapters::dialogue::{Dialogue, Exit, FailureKind, Steps};
use crate::adapters::event::{Decision, Event};
use crate::adapters::json_lines::HOW_TO_GO_ON;
use crate::adapters::order::Order;

/// The description of a call made without approval is truncated to this many characters.
const LONGEST_NAME: usize = 500;

#[derive(Default)]
pub(super) struct AcpDialogue {
    prompt: String,
    cwd: String,
    resume: Option<String>,
    /// Settings that are still to be made before the prompt.
    pending_settings: Vec<SessionSetting>,
    /// The agent's id of the session.
    session: String,
    settings: SessionSettings,
    /// The login methods that the agent offers, for people.
    logins: Vec<String>,
    last_id: i64,
    waiting: Waiting,
    /// Another request was answered since the session was resumed, so the agent has replayed all of its history.
    replay_is_over: bool,
    interrupted: bool,
    updates: Updates,
    permission_requests: PermissionRequests,
}

/// The request that the agent is to answer next.
#[derive(Default)]
enum Waiting {
    Initialize,
    NewSession,
    ResumeSession,
    Setting(SessionSetting),
    /// A request that changes nothing; its answer marks the end of the replayed history.
    ReplayBarrier,
    Prompt,
    /// The turn is over.
    #[default]
    Nothing,
}

impl AcpDialogue {
    pub(super) fn new(order: &Order, cwd: &str, denied: Vec<&'static str>) -> Self {
        let resume = order.session.resumed().cloned();
        Self {
            prompt: as_message(&order.prompt),
            cwd: cwd.to_owned(),
            pending_settings: SessionSetting::of(order),
            replay_is_over: resume.is_none(),
            updates: Updates::new(resume.is_some(), denied),
            resume,
            ..Self::default()
        }
    }

    fn request(&mut self, waiting: Waiting, method: &str, params: impl Serialize, steps: &mut Steps) {
        self.last_id += 1;
        self.waiting = waiting;
        message::request(steps, self.last_id, method, params);
    }

    fn fail(&mut self, kind: FailureKind, text: impl Into<String>, steps: &mut Steps) {
        self.waiting = Waiting::Nothing;
        steps.fail(kind, text);
    }

    fn response(&mut self, outcome: Result<Value, Error>, steps: &mut Steps) {
        match (std::mem::replace(&mut self.waiting, Waiting::Nothing), outcome) {
            (Waiting::Initialize, Ok(result)) => self.initialized(&result, steps),
            (Waiting::NewSession, Ok(result)) => self.session_created(&result, steps),
            (Waiting::ResumeSession, Ok(result)) => self.session_opened(&result, steps),
            (Waiting::Setting(setting), Ok(result)) => self.set(&setting, &result, steps),
            // A refusal is as good: the setting stays as it was.
            (Waiting::ReplayBarrier, _) => self.give_prompt(steps),
            (Waiting::Prompt, outcome) => self.turn_ended(outcome, steps),
            (Waiting::ResumeSession, Err(error)) => {
                let text = format!("the agent cannot take up this conversation: {}", errors::describe(&error));
                self.refused(errors::kind_on_resume(&error), text, steps);
            }
            (Waiting::Setting(setting), Err(error)) => {
                let (why, offered) = (errors::describe(&error), self.settings.offered(&setting));
                let SessionSetting { name, value, .. } = setting;
                let text = format!("the {name} {value} was not taken: {why}; the agent offers: {offered}");
                self.refused(errors::kind(&error), text, steps);
            }
            (Waiting::Initialize | Waiting::NewSession, Err(error)) => {
                self.refused(errors::kind(&error), errors::describe(&error), steps);
            }
            (Waiting::Nothing, _) => {}
        }
    }

    fn refused(&mut self, kind: FailureKind, text: String, steps: &mut Steps) {
        if kind != FailureKind::NotLoggedIn {
            return self.fail(kind, text, steps);
        }
        let how = if self.logins.is_empty() { "with its own program".to_owned() } else { self.logins.join(", ") };
        self.fail(kind, format!("the agent is not logged in: {text}; log in by one of: {how}"), steps);
    }

    fn initialized(&mut self, result: &Value, steps: &mut Steps) {
        let version = &result["protocolVersion"];
        let spoken = u64::from(ProtocolVersion::V1.as_u16());
        // Left out, it can only be the first there was.
        if !version.is_null() && version.as_u64() != Some(spoken) {
            let text = format!("the agent speaks version {version} of the protocol, and only version {spoken} will do");
            return self.fail(FailureKind::Reported, text, steps);
        }
        let logins = result.get("authMethods").and_then(Value::as_array).into_iter().flatten();
        let name = |login: &Value| login.get("name").or_else(|| login.get("id"))?.as_str().map(str::to_owned);
        self.logins = logins.filter_map(name).collect();
        let Some(session) = self.resume.clone() else {
            let params = NewSessionRequest::new(&self.cwd);
            return self.request(Waiting::NewSession, AGENT_METHOD_NAMES.session_new, params, steps);
        };
        let capabilities = result.get("agentCapabilities").cloned().unwrap_or_default();
        let capabilities: AgentCapabilities = serde_json::from_value(capabilities).unwrap_or_default();
        self.session.clone_from(&session);
        if capabilities.session_capabilities.resume.is_some() {
            self.replay_is_over = true;
            let params = ResumeSessionRequest::new(session, &self.cwd);
            self.request(Waiting::ResumeSession, AGENT_METHOD_NAMES.session_resume, params, steps);
        } else if capabilities.load_session {
            let params = LoadSessionRequest::new(session, &self.cwd);
            self.request(Waiting::ResumeSession, AGENT_METHOD_NAMES.session_load, params, steps);
        } else {
            let text = "this agent cannot take up conversations: begin a new one";
            self.fail(FailureKind::UnknownSession, text, steps);
        }
    }

    fn session_created(&mut self, result: &Value, steps: &mut Steps) {
        match result.get("sessionId").and_then(Value::as_str) {
            Some(session) => {
                self.session = session.to_owned();
                self.session_opened(result, steps);
            }
            None => self.fail(FailureKind::Reported, "the agent gave the conversation no name", steps),
        }
    }

    fn session_opened(&mut self, result: &Value, steps: &mut Steps) {
        self.settings = SessionSettings::read(result);
        self.emit_init(steps);
        self.set_next(steps);
    }

    fn set(&mut self, setting: &SessionSetting, result: &Value, steps: &mut Steps) {
        self.replay_is_over = true;
        let settings = SessionSettings::read(result);
        if !settings.is_empty() {
            self.settings = settings;
        }
        if setting.is_model() {
            steps.event(Event::Init { session: Some(self.session.clone()), model: Some(setting.value.clone()) });
        }
        self.set_next(steps);
    }

    fn emit_init(&self, steps: &mut Steps) {
        steps.event(Event::Init { session: Some(self.session.clone()), model: self.settings.model() });
    }

    /// Makes the next setting, or sends the prompt.
    fn set_next(&mut self, steps: &mut Steps) {
        while !self.pending_settings.is_empty() {
            let setting = self.pending_settings.remove(0);
            let Some(current) = self.settings.current(&setting) else {
                let SessionSetting { name, value, .. } = setting;
                let text = format!("The agent does not let its {name} be set to {value}: it is left as it is.");
                steps.event(Event::Notice { text });
                continue;
            };
            if current != Some(&setting.value) {
                self.last_id += 1;
                self.settings.set(&setting, &self.session, self.last_id, steps);
                self.waiting = Waiting::Setting(setting);
                return;
            }
        }
        // An agent that loads a session replays its history. The protocol wants that done before the response, but
        // gemini goes on after it. All of it is sent before the response to a next request; so one is made that changes
        // nothing, and every update before its response is history.
        match self.settings.mode.clone().filter(|_| !self.replay_is_over) {
            Some(mode) => {
                let params = SetSessionModeRequest::new(self.session.clone(), mode);
                self.request(Waiting::ReplayBarrier, AGENT_METHOD_NAMES.session_set_mode, params, steps);
            }
            None => self.give_prompt(steps),
        }
    }

    fn give_prompt(&mut self, steps: &mut Steps) {
        let text = ContentBlock::Text(TextContent::new(std::mem::take(&mut self.prompt)));
        let params = PromptRequest::new(self.session.clone(), vec![text]);
        self.request(Waiting::Prompt, AGENT_METHOD_NAMES.session_prompt, params, steps);
    }

    fn turn_ended(&mut self, outcome: Result<Value, Error>, steps: &mut Steps) {
        self.updates.close(steps);
        self.permission_requests.close(steps);
        let result = match outcome {
            Ok(result) => result,
            Err(error) if self.interrupted => {
                return self.fail(FailureKind::Interrupted, errors::describe(&error), steps);
            }
            Err(error) => return self.refused(errors::kind(&error), errors::describe(&error), steps),
        };
        self.updates.usage.close(&result, steps);
        let reason = result.get("stopReason").cloned().unwrap_or_default();
        let (kind, text) = match serde_json::from_value(reason.clone()) {
            Ok(StopReason::EndTurn) => return steps.done(self.updates.messages.last()),
            Ok(StopReason::MaxTokens) => (FailureKind::Limit, "the model came to its limit of tokens".to_owned()),
            Ok(StopReason::MaxTurnRequests) => (FailureKind::Limit, "the agent came to its limit of steps".to_owned()),
            Ok(StopReason::Refusal) => (FailureKind::Reported, "the agent refused to go on".to_owned()),
            Ok(StopReason::Cancelled) => (FailureKind::Interrupted, "the agent was stopped".to_owned()),
            _ => (FailureKind::Reported, format!("the agent stopped for a reason that is not known here: {reason}")),
        };
        self.fail(kind, text, steps);
    }

    fn request_from_agent(&mut self, id: RequestId, method: &str, params: &Value, steps: &mut Steps) {
        if method != CLIENT_METHOD_NAMES.session_request_permission {
            // Neither files nor terminals were offered to it.
            let error = Error::method_not_found().data(Value::from(method));
            return message::answer(steps, id, Err::<(), _>(error));
        }
        if self.interrupted || !matches!(self.waiting, Waiting::Prompt) {
            return permission_requests::cancel(id, steps);
        }
        self.updates.messages.end(steps);
        self.permission_requests.ask(id, params, &mut self.updates.tools, steps);
    }

    fn session_update(&mut self, params: &Value, steps: &mut Steps) {
        let other = params.get("sessionId").and_then(Value::as_str).is_some_and(|session| session != self.session);
        if matches!(self.waiting, Waiting::Prompt) && !other {
            self.updates.update(&params["update"], steps);
            if let Some(used) = self.updates.tools.take_breach() {
                let used = crate::adapters::cut(&used, LONGEST_NAME).into_owned();
                let text = format!(
                    "the agent used what permissions.deny names without asking, so that nothing could hold it back: \
                     {used}; deny it in the agent's own settings, or remove the rule"
                );
                self.updates.close(steps);
                self.permission_requests.close(steps);
                self.fail(FailureKind::Refused, text, steps);
            }
        }
    }
}

impl Dialogue for AcpDialogue {
    fn begin(&mut self, steps: &mut Steps) {
        let params = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::default())
            .client_info(Implementation::new("switchboard", env!("CARGO_PKG_VERSION")));
        self.request(Waiting::Initialize, AGENT_METHOD_NAMES.initialize, params, steps);
    }

    fn line(&mut self, line: &str, steps: &mut Steps) {
        if matches!(self.waiting, Waiting::Nothing) {
            return;
        }
        match Incoming::read(line) {
            Some(Incoming::Answer { id, outcome }) if id == RequestId::Number(self.last_id) => {
                self.response(outcome, steps);
            }
            Some(Incoming::Request { id, method, params }) => self.request_from_agent(id, &method, &params, steps),
            Some(Incoming::Notification { method, params }) if method == CLIENT_METHOD_NAMES.session_update => {
                self.session_update(&params, steps);
            }
            Some(Incoming::Notification { method, params }) if method == PROTOCOL_LEVEL_METHOD_NAMES.cancel_request => {
                self.permission_requests.withdraw(&params["requestId"], steps);
            }
            _ => {}
        }
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Steps) {
        self.permission_requests.decide(request, decision, &mut self.updates.tools, steps);
    }

    fn interrupt(&mut self, steps: &mut Steps) {
        self.interrupted = true;
        match self.waiting {
            Waiting::Nothing => {}
            Waiting::Prompt => {
                let params = CancelNotification::new(self.session.clone());
                message::notification(steps, AGENT_METHOD_NAMES.session_cancel, params);
                self.permission_requests.cancel_all(steps);
            }
            // There is nothing to stop yet, and now there never will be.
            _ => self.fail(FailureKind::Interrupted, "stopped before the agent was given the message", steps),
        }
    }

    fn ended(&mut self, exit: &Exit, steps: &mut Steps) {
        if matches!(self.waiting, Waiting::Nothing) {
            return;
        }
        self.updates.close(steps);
        self.permission_requests.close(steps);
        if self.interrupted {
            return self.fail(FailureKind::Interrupted, "the agent was stopped", steps);
        }
        if !matches!(self.waiting, Waiting::Prompt) && crate::adapters::opencode::lost_a_race(exit) {
            return self.fail(FailureKind::NotReady, format!("the agent {}", exit.describe()), steps);
        }
        let text = format!("the agent {} before it said how the turn went; {HOW_TO_GO_ON}", exit.describe());
        self.fail(FailureKind::NoResult, text, steps);
    }
}

/// Agents take a message that begins with one of these signs as a command of their own, carried out without asking:
/// gemini installs extensions so. A caller's message is never a command, so such a message gets a line before it.
fn as_message(prompt: &str) -> String {
    if prompt.trim_start().starts_with(['/', '$']) { format!("The message is:\n{prompt}") } else { prompt.to_owned() }
}
