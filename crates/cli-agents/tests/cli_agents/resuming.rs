//! A program that can take up its conversations again and ask: its session is an argument.

use switchboard_cli_agents::adapters::{About, Adapter, Declared, Dialogue, Launch, Order, OrderError, Session};

/// A generic program that gets `new SESSION` or `resume SESSION` as its arguments.
pub(crate) struct Resuming {
    about: About,
    program: Declared,
}

impl Resuming {
    pub(crate) fn new(program: Declared) -> Self {
        let mut about = program.about().clone();
        "resuming".clone_into(&mut about.name);
        about.capabilities.resume = true;
        Self { about, program }
    }

    /// Another kind of program.
    pub(crate) fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.about.name);
        self
    }

    /// It uses the name that it is given for a new conversation.
    pub(crate) fn with_chosen_sessions(mut self) -> Self {
        self.about.capabilities.chosen_session = true;
        self
    }
}

impl Adapter for Resuming {
    fn about(&self) -> &About {
        &self.about
    }

    fn start(&self, order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        let (word, session) = match &order.session {
            Session::New(session) => ("new", session),
            Session::Resume(session) => ("resume", session),
        };
        let args = [word.to_owned(), session.clone()].into_iter().chain(order.args.clone()).collect();
        let order = Order { args, session: Session::New(session.clone()), model: None, effort: None, ..order.clone() };
        self.program.start(&order)
    }
}
