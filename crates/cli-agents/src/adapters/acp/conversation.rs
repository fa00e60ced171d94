//! One run of an agent, from the greeting to the end of the turn.
//!
//! One request of ours is open at a time: `initialize`, then a conversation is begun or taken up, then what was ordered
//! is set, then the prompt is given. Only what comes after the prompt is told.

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
use super::permission::{self, Permissions};
use super::settings::{Settings, Wish};
use super::updates::Updates;
use crate::adapters::dialogue::{Dialogue, Exit, FailureKind, Steps};
use crate::adapters::event::{Decision, Event};
use crate::adapters::lines::HOW_TO_GO_ON;
use crate::adapters::order::{Order, Session};

/// Of what was used without asking, so many characters are told.
const LONGEST_NAME: usize = 500;

/// The state of one run.
pub(super) struct Conversation {
    prompt: String,
    cwd: String,
    /// The conversation to take up.
    resume: Option<String>,
    /// What is still to be set before the prompt.
    wishes: Vec<Wish>,
    /// The agent's name for the conversation.
    session: String,
    settings: Settings,
    /// How one could log in, for people.
    logins: Vec<String>,
    last_id: i64,
    /// What the open request is about.
    waiting: Waiting,
    /// Something was set after the conversation was taken up, so what the agent repeats of it is over.
    settled: bool,
    interrupted: bool,
    updates: Updates,
    permissions: Permissions,
}

/// What the agent is to answer next.
enum Waiting {
    Greeting,
    Begin,
    TakeUp,
    Setting(Wish),
    /// Nothing is wanted of the answer but that it comes.
    Settling,
    Prompt,
    /// The turn is over.
    Nothing,
}

impl Conversation {
    pub(super) fn new(order: &Order, cwd: &str, denied: Vec<&'static str>) -> Self {
        let resume = match &order.session {
            Session::New(_) => None,
            Session::Resume(session) => Some(session.clone()),
        };
        let model = order.model.clone().map(Wish::Model);
        let effort = order.effort.clone().map(Wish::Effort);
        Self {
            prompt: as_message(&order.prompt),
            cwd: cwd.to_owned(),
            wishes: model.into_iter().chain(effort).collect(),
            session: String::new(),
            settings: Settings::default(),
            logins: Vec::new(),
            last_id: 0,
            waiting: Waiting::Nothing,
            settled: resume.is_none(),
            interrupted: false,
            updates: Updates::new(resume.is_some(), denied),
            permissions: Permissions::default(),
            resume,
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

    fn answered(&mut self, outcome: Result<Value, Error>, steps: &mut Steps) {
        match (std::mem::replace(&mut self.waiting, Waiting::Nothing), outcome) {
            (Waiting::Greeting, Ok(result)) => self.greeted(&result, steps),
            (Waiting::Begin, Ok(result)) => self.begun(&result, steps),
            (Waiting::TakeUp, Ok(result)) => self.opened(&result, steps),
            (Waiting::Setting(wish), Ok(result)) => self.set(&wish, &result, steps),
            // An answer is an answer: what is refused here stays as it was.
            (Waiting::Settling, _) => self.give_prompt(steps),
            (Waiting::Prompt, outcome) => self.ended_turn(outcome, steps),
            (Waiting::TakeUp, Err(error)) => {
                let text = format!("the agent cannot take up this conversation: {}", errors::describe(&error));
                self.refused(errors::kind_when_taking_up(&error), text, steps);
            }
            (Waiting::Setting(wish), Err(error)) => {
                let (name, value, offered) = (wish.name(), wish.value(), self.settings.offered(&wish));
                let why = errors::describe(&error);
                let text = format!("the {name} {value} was not taken: {why}; the agent offers: {offered}");
                self.refused(errors::kind(&error), text, steps);
            }
            (Waiting::Greeting | Waiting::Begin, Err(error)) => {
                self.refused(errors::kind(&error), errors::describe(&error), steps);
            }
            (Waiting::Nothing, _) => {}
        }
    }

    /// A request of ours was refused.
    fn refused(&mut self, kind: FailureKind, text: String, steps: &mut Steps) {
        if kind != FailureKind::NotLoggedIn {
            return self.fail(kind, text, steps);
        }
        let how = if self.logins.is_empty() { "with its own program".to_owned() } else { self.logins.join(", ") };
        self.fail(kind, format!("the agent is not logged in: {text}; log in by one of: {how}"), steps);
    }

    fn greeted(&mut self, result: &Value, steps: &mut Steps) {
        let version = result.get("protocolVersion").unwrap_or(&Value::Null);
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
            return self.request(Waiting::Begin, AGENT_METHOD_NAMES.session_new, params, steps);
        };
        let capabilities = result.get("agentCapabilities").cloned().unwrap_or_default();
        let capabilities: AgentCapabilities = serde_json::from_value(capabilities).unwrap_or_default();
        self.session.clone_from(&session);
        if capabilities.session_capabilities.resume.is_some() {
            self.settled = true;
            let params = ResumeSessionRequest::new(session, &self.cwd);
            self.request(Waiting::TakeUp, AGENT_METHOD_NAMES.session_resume, params, steps);
        } else if capabilities.load_session {
            let params = LoadSessionRequest::new(session, &self.cwd);
            self.request(Waiting::TakeUp, AGENT_METHOD_NAMES.session_load, params, steps);
        } else {
            let text = "this agent cannot take up conversations: begin a new one";
            self.fail(FailureKind::UnknownSession, text, steps);
        }
    }

    fn begun(&mut self, result: &Value, steps: &mut Steps) {
        match result.get("sessionId").and_then(Value::as_str) {
            Some(session) => {
                self.session = session.to_owned();
                self.opened(result, steps);
            }
            None => self.fail(FailureKind::Reported, "the agent gave the conversation no name", steps),
        }
    }

    /// The conversation is there.
    fn opened(&mut self, result: &Value, steps: &mut Steps) {
        self.settings = Settings::read(result);
        self.tell_ready(steps);
        self.go_on(steps);
    }

    fn set(&mut self, wish: &Wish, result: &Value, steps: &mut Steps) {
        self.settled = true;
        let settings = Settings::read(result);
        if !settings.is_empty() {
            self.settings = settings;
        }
        if let Wish::Model(model) = wish {
            let (session, model) = (Some(self.session.clone()), Some(model.clone()));
            steps.event(Event::Init { session, model });
        }
        self.go_on(steps);
    }

    fn tell_ready(&self, steps: &mut Steps) {
        steps.event(Event::Init { session: Some(self.session.clone()), model: self.settings.model() });
    }

    /// Sets the next wish, or gives the prompt.
    fn go_on(&mut self, steps: &mut Steps) {
        while !self.wishes.is_empty() {
            let wish = self.wishes.remove(0);
            if self.settings.has(&wish) {
                continue;
            }
            if self.settings.can(&wish) {
                self.last_id += 1;
                self.settings.set(&wish, &self.session, self.last_id, steps);
                self.waiting = Waiting::Setting(wish);
                return;
            }
            let (name, value) = (wish.name(), wish.value());
            let text = format!("The agent does not let its {name} be set to {value}: it is left as it is.");
            steps.event(Event::Notice { text });
        }
        // An agent that loads a conversation repeats it. The protocol wants that done before the answer, but gemini
        // goes on after it. What it repeats is all on its way by the time it can answer another request; so one is made
        // that changes nothing, and everything before its answer is old.
        match self.settings.mode.clone().filter(|_| !self.settled) {
            Some(mode) => {
                let params = SetSessionModeRequest::new(self.session.clone(), mode);
                self.request(Waiting::Settling, AGENT_METHOD_NAMES.session_set_mode, params, steps);
            }
            None => self.give_prompt(steps),
        }
    }

    fn give_prompt(&mut self, steps: &mut Steps) {
        let text = ContentBlock::Text(TextContent::new(std::mem::take(&mut self.prompt)));
        let params = PromptRequest::new(self.session.clone(), vec![text]);
        self.request(Waiting::Prompt, AGENT_METHOD_NAMES.session_prompt, params, steps);
    }

    fn ended_turn(&mut self, outcome: Result<Value, Error>, steps: &mut Steps) {
        self.updates.close(steps);
        self.permissions.close(steps);
        let result = match outcome {
            Ok(result) => result,
            Err(error) if self.interrupted => {
                return self.fail(FailureKind::Interrupted, errors::describe(&error), steps);
            }
            Err(error) => return self.refused(errors::kind(&error), errors::describe(&error), steps),
        };
        self.updates.account.close(&result, steps);
        let reason = result.get("stopReason").cloned().unwrap_or_default();
        let (kind, text) = match serde_json::from_value(reason.clone()) {
            Ok(StopReason::EndTurn) => return steps.done(self.updates.text.answer()),
            Ok(StopReason::MaxTokens) => (FailureKind::Limit, "the model came to its limit of tokens".to_owned()),
            Ok(StopReason::MaxTurnRequests) => (FailureKind::Limit, "the agent came to its limit of steps".to_owned()),
            Ok(StopReason::Refusal) => (FailureKind::Reported, "the agent refused to go on".to_owned()),
            Ok(StopReason::Cancelled) => (FailureKind::Interrupted, "the agent was stopped".to_owned()),
            _ => (FailureKind::Reported, format!("the agent stopped for a reason that is not known here: {reason}")),
        };
        self.fail(kind, text, steps);
    }

    /// The agent wants something of us.
    fn asked(&mut self, id: RequestId, method: &str, params: &Value, steps: &mut Steps) {
        if method != CLIENT_METHOD_NAMES.session_request_permission {
            // Neither files nor terminals were offered to it.
            let error = Error::method_not_found().data(Value::from(method));
            return message::answer(steps, id, Err::<(), _>(error));
        }
        if self.interrupted || !matches!(self.waiting, Waiting::Prompt) {
            return permission::cancel(id, steps);
        }
        self.updates.text.end(steps);
        self.permissions.ask(id, params, &mut self.updates.tools, steps);
    }

    fn told(&mut self, params: &Value, steps: &mut Steps) {
        let other = params.get("sessionId").and_then(Value::as_str).is_some_and(|session| session != self.session);
        if matches!(self.waiting, Waiting::Prompt) && !other {
            self.updates.update(params.get("update").unwrap_or(&Value::Null), steps);
            if let Some(used) = self.updates.tools.take_breach() {
                let used = crate::adapters::cut(&used, LONGEST_NAME).into_owned();
                let text = format!(
                    "the agent used what permissions.deny names without asking, so that nothing could hold it back: \
                     {used}; deny it in the agent's own settings, or remove the rule"
                );
                self.updates.close(steps);
                self.permissions.close(steps);
                self.fail(FailureKind::Refused, text, steps);
            }
        }
    }
}

impl Dialogue for Conversation {
    fn begin(&mut self, steps: &mut Steps) {
        let params = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::default())
            .client_info(Implementation::new("switchboard", env!("CARGO_PKG_VERSION")));
        self.request(Waiting::Greeting, AGENT_METHOD_NAMES.initialize, params, steps);
    }

    fn line(&mut self, line: &str, steps: &mut Steps) {
        if matches!(self.waiting, Waiting::Nothing) {
            return;
        }
        match Incoming::read(line) {
            Some(Incoming::Answer { id, outcome }) if id == RequestId::Number(self.last_id) => {
                self.answered(outcome, steps);
            }
            Some(Incoming::Request { id, method, params }) => self.asked(id, &method, &params, steps),
            Some(Incoming::Notification { method, params }) if method == CLIENT_METHOD_NAMES.session_update => {
                self.told(&params, steps);
            }
            Some(Incoming::Notification { method, params }) if method == PROTOCOL_LEVEL_METHOD_NAMES.cancel_request => {
                self.permissions.withdraw(params.get("requestId").unwrap_or(&Value::Null), steps);
            }
            _ => {}
        }
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Steps) {
        self.permissions.decide(request, decision, &mut self.updates.tools, steps);
    }

    fn interrupt(&mut self, steps: &mut Steps) {
        self.interrupted = true;
        match self.waiting {
            Waiting::Nothing => {}
            Waiting::Prompt => {
                let params = CancelNotification::new(self.session.clone());
                message::notification(steps, AGENT_METHOD_NAMES.session_cancel, params);
                self.permissions.cancel_all(steps);
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
        self.permissions.close(steps);
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
/// gemini installs extensions so. What callers say is never that, so such a message gets a line before it.
fn as_message(prompt: &str) -> String {
    if prompt.trim_start().starts_with(['/', '$']) { format!("The message is:\n{prompt}") } else { prompt.to_owned() }
}
