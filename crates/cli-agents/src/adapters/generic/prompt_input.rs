//! How a program gets its prompt, and whether its standard input stays open afterwards.

use serde_json::json;

use crate::adapters::dialogue::Steps;
use crate::adapters::order::{Order, OrderError};

/// The first line written to the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PromptInput {
    /// The prompt, if it is not an argument.
    write: Option<String>,
    /// Whether answers may have to be written later.
    answers: bool,
}

impl PromptInput {
    /// Nothing is ever written, unless there are answers to write.
    pub(crate) fn empty(answers: bool) -> Self {
        Self { write: None, answers }
    }

    /// The prompt as it is, to the end of the input.
    pub(crate) fn whole(order: &Order) -> Self {
        Self { write: Some(order.prompt.clone()), answers: false }
    }

    /// The prompt as a line, answers on lines after it. A second line of the prompt would be read as an answer to a
    /// question that was not asked yet, so there must be none.
    pub(crate) fn line(order: &Order) -> Result<Self, OrderError> {
        let prompt = order.prompt.trim_end_matches(['\r', '\n']);
        if prompt.contains(['\r', '\n']) {
            let reason = "the message has several lines, and this agent takes one: send it as a single line";
            return Err(OrderError::Unsupported(reason.to_owned()));
        }
        Ok(Self { write: Some(prompt.to_owned()), answers: true })
    }

    /// The prompt as a JSON line, answers as JSON lines after it.
    pub(crate) fn json_line(order: &Order) -> Self {
        Self { write: Some(json!({ "kind": "prompt", "text": order.prompt }).to_string()), answers: true }
    }

    /// Whether the program needs its standard input.
    pub(crate) fn input(&self) -> bool {
        self.write.is_some() || self.answers
    }

    /// Writes the prompt.
    pub(crate) fn begin(&mut self, steps: &mut Steps) {
        let Some(write) = self.write.take() else { return };
        steps.write(write);
        if !self.answers {
            steps.close_input();
        }
    }
}
