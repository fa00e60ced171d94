//! Finds the patterns that a topic matches, where there are many, such as those of routes. They are kept in a tree by their
//! words, so that a thousand of them cost what the words of the topic cost.

use std::collections::HashMap;

use super::topic::Pattern;

/// Patterns by their words, each with a number.
#[derive(Debug, Default)]
pub(crate) struct TopicIndex {
    words: HashMap<Box<str>, TopicIndex>,
    /// Below `*`.
    any: Option<Box<TopicIndex>>,
    /// Patterns that end here.
    here: Vec<usize>,
    /// Patterns that end here with `#`.
    open: Vec<usize>,
}

impl TopicIndex {
    pub(crate) fn insert(&mut self, pattern: &Pattern, number: usize) {
        let mut node = self;
        for word in pattern.words() {
            node = match word.as_str() {
                "*" => node.any.get_or_insert_default(),
                word => node.words.entry(word.into()).or_default(),
            };
        }
        if pattern.is_open() { node.open.push(number) } else { node.here.push(number) }
    }

    /// Whether there is no pattern.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.any.is_none() && self.here.is_empty() && self.open.is_empty()
    }

    /// Whether a pattern begins with a word.
    pub(crate) fn begins_with(&self, word: &str) -> bool {
        self.any.is_some() || !self.open.is_empty() || self.words.contains_key(word)
    }

    /// Whether a topic matches any.
    pub(crate) fn has(&self, topic: &str) -> bool {
        let mut is_found = false;
        self.find(topic, &mut |_| is_found = true);
        is_found
    }

    /// Calls a function with the number of every pattern that a topic matches.
    pub(crate) fn find(&self, topic: &str, found: &mut impl FnMut(usize)) {
        self.open.iter().copied().for_each(&mut *found);
        let (word, rest) = match topic.split_once('.') {
            Some((word, rest)) => (word, Some(rest)),
            None => (topic, None),
        };
        for node in self.words.get(word).into_iter().chain(self.any.as_deref()) {
            match rest {
                Some(rest) => node.find(rest, found),
                None => node.here.iter().chain(&node.open).copied().for_each(&mut *found),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern() -> impl Strategy<Value = String> {
        let word = prop_oneof![Just("a"), Just("b"), Just("*")];
        (prop_oneof![Just("a"), Just("b")], prop::collection::vec(word, 0..3), any::<bool>()).prop_map(
            |(first, rest, is_open)| {
                let mut words = vec![first];
                words.extend(rest);
                words.extend(is_open.then_some("#"));
                words.join(".")
            },
        )
    }

    proptest! {
        #[test]
        fn the_index_finds_what_each_pattern_matches(
            patterns in prop::collection::vec(pattern(), 0..12),
            topic in prop::collection::vec(prop_oneof![Just("a"), Just("b"), Just("c")], 1..5),
        ) {
            let topic = topic.join(".");
            let patterns: Vec<Pattern> = patterns.iter().filter_map(|text| Pattern::parse(text)).collect();
            let mut index = TopicIndex::default();
            patterns.iter().enumerate().for_each(|(number, pattern)| index.insert(pattern, number));
            let mut found = Vec::new();
            index.find(&topic, &mut |number| found.push(number));
            found.sort_unstable();
            let right: Vec<usize> = (0..patterns.len()).filter(|number| patterns[*number].matches(&topic)).collect();
            prop_assert_eq!(found, right);
        }
    }
}
