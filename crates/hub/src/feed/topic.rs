//! Topics: words with dots between, from the general to the particular, and patterns over them.

pub(crate) use switchboard_engine::store::feed::topic_segment as segment;

/// A pattern: `*` stands for one word, `#` at its end for any number of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    words: Vec<String>,
    /// Whether it ends with `#`.
    is_open: bool,
}

impl Pattern {
    /// Reads a pattern; nothing if a word is empty or `#` is not its last one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words: Vec<String> = text.split('.').map(str::to_owned).collect();
        let is_open = words.last().is_some_and(|word| word == "#");
        if is_open {
            words.pop();
        }
        let is_written = words.iter().all(|word| !word.is_empty() && word != "#");
        is_written.then_some(Self { words, is_open })
    }

    /// Its words before `#`, each of which may be `*`.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// Whether any number of words may follow.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether its first word is one of these, and not any word.
    pub(crate) fn begins_with(&self, words: &[&str]) -> bool {
        self.words.first().is_some_and(|first| words.contains(&first.as_str()))
    }

    pub(crate) fn matches(&self, topic: &str) -> bool {
        let mut given = topic.split('.');
        for wanted in &self.words {
            match given.next() {
                Some(word) if wanted == "*" || wanted == word => {}
                _ => return false,
            }
        }
        self.is_open || given.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::{Pattern, segment};

    #[test]
    fn patterns_match_word_by_word() {
        let matches = |pattern: &str, topic: &str| Pattern::parse(pattern).is_some_and(|it| it.matches(topic));
        assert!(matches("#", "task.completed.echo") && matches("task.#", "task.completed.echo"));
        assert!(matches("task.*.echo", "task.failed.echo") && matches("task.failed.echo.#", "task.failed.echo"));
        assert!(!matches("task.*", "task.failed.echo") && !matches("task.failed.echo", "task.failed"));
        assert!(!matches("tas", "task") && !matches("*.failed", "task.failed.echo"));
        for wrong in ["", "task..echo", "#.task", "task.#.echo", "."] {
            assert_eq!(Pattern::parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(segment("a.b c~d/é-_9"), "a_b_c_d__-_9");
    }
}
