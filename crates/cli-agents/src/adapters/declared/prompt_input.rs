//! How a program gets its prompt, and whether its standard input stays open afterwards.

use serde_json::json;

use crate::adapters::declared::Output;
use crate::adapters::dialogue::Steps;
use crate::adapters::order::{Order, OrderError};

/// The first line written to the program.
#[derive(Debug)]
pub(crate) struct PromptInput {
    /// The prompt, if it is not an argument.
    write: Option<String>,
    /// Whether answers may have to be written later.
    answers: bool,
}

impl PromptInput {
    /// The input of a program with this output. Where it asks, answers come on lines after the prompt: a second line of
    /// the prompt would be read as an answer to a question that was not asked yet, so there must be none.
    pub(crate) fn new(prompt_is_input: bool, output: &Output, order: &Order) -> Result<Self, OrderError> {
        let prompt = &order.prompt;
        let write = match output {
            _ if !prompt_is_input => None,
            Output::Text { questions: Some(_) } => {
                let line = prompt.trim_end_matches(['\r', '\n']);
                if line.contains(['\r', '\n']) {
                    let reason = "the message has several lines, and this agent takes one: send it as a single line";
                    return Err(OrderError::Unsupported(reason.to_owned()));
                }
                Some(line.to_owned())
            }
            Output::Jsonl { asks: true } => Some(json!({ "kind": "prompt", "text": prompt }).to_string()),
            Output::Text { questions: None } | Output::Jsonl { asks: false } => Some(prompt.clone()),
        };
        Ok(Self { write, answers: output.asks() })
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
