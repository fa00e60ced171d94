//! Makes a new input out of known ones: small damage to the bytes, and exchanges of whole JSON values, which get past
//! the parser to the code behind it.

use crate::dictionary::WORDS;
use crate::random::Random;

/// No input grows beyond this: decoders are linear, and more executions find more than longer inputs.
pub const MOST_BYTES: usize = 16 << 10;
const MOST_STEPS: usize = 6;

/// A new input.
pub fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = random.choose(corpus).cloned().unwrap_or_default();
    for _ in 0..=random.below(MOST_STEPS) {
        step(random, &mut input, corpus);
    }
    input.truncate(MOST_BYTES);
    input
}

fn step(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    match random.below(10) {
        0 => flip_bit(random, input),
        1 => set_byte(random, input),
        2 => input.truncate(random.below(input.len() + 1)),
        3 => remove_range(random, input),
        4 => repeat_range(random, input),
        5 | 6 => insert_word(random, input),
        7 => splice(random, input, corpus),
        _ => exchange_value(random, input, corpus),
    }
}

fn flip_bit(random: &mut Random, input: &mut [u8]) {
    let place = random.below(input.len());
    if let Some(byte) = input.get_mut(place) {
        *byte ^= 1 << random.below(8);
    }
}

fn set_byte(random: &mut Random, input: &mut [u8]) {
    let place = random.below(input.len());
    if let Some(byte) = input.get_mut(place) {
        *byte = random.number() as u8;
    }
}

/// A start and an end in order, rarely far apart.
fn range(random: &mut Random, length: usize) -> std::ops::Range<usize> {
    let start = random.below(length + 1);
    let reach = if random.below(4) == 0 { length } else { 16 };
    start..(start + random.below(reach + 1)).min(length)
}

fn remove_range(random: &mut Random, input: &mut Vec<u8>) {
    input.drain(range(random, input.len()));
}

fn repeat_range(random: &mut Random, input: &mut Vec<u8>) {
    let repeated = input[range(random, input.len())].to_vec();
    let times = 1 + random.below(3);
    let place = random.below(input.len() + 1);
    for _ in 0..times {
        input.splice(place..place, repeated.iter().copied());
    }
}

fn insert_word(random: &mut Random, input: &mut Vec<u8>) {
    let word = random.choose(WORDS).copied().unwrap_or_default();
    let place = random.below(input.len() + 1);
    input.splice(place..place, word.bytes());
}

/// The beginning of one input and the end of another.
fn splice(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let Some(other) = random.choose(corpus) else { return };
    input.truncate(random.below(input.len() + 1));
    input.extend_from_slice(&other[random.below(other.len() + 1)..]);
}

/// Puts a JSON value from somewhere else in the place of one of this input.
fn exchange_value(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let Some(place) = value(random, input) else { return };
    let replacement = match random.below(3) {
        0 => random.choose(WORDS).map(|word| word.trim_end_matches(',').as_bytes().to_vec()),
        _ => random.choose(corpus).and_then(|other| Some(other[value(random, other)?].to_vec())),
    };
    input.splice(place, replacement.unwrap_or_default());
}

/// Where some value begins and ends: after a colon, a comma or an opening bracket. Good enough for text that is JSON.
fn value(random: &mut Random, text: &[u8]) -> Option<std::ops::Range<usize>> {
    let from = random.below(text.len());
    let before = |byte: &u8| matches!(byte, b':' | b',' | b'[');
    let start = from + text.get(from..)?.iter().position(before)? + 1;
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    for (offset, byte) in text.get(start..)?.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => return Some(start..start + offset),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_inputs_again_and_different_ones_in_a_row() {
        let corpus = vec![br#"{"a":[1,{"b":"c"}],"d":null}"#.to_vec(), b"agents:\n  - name: a\n".to_vec()];
        let inputs = |seed| {
            let mut random = Random::new(seed);
            (0..200).map(|_| mutate(&mut random, &corpus)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
        let distinct: std::collections::HashSet<_> = inputs(7).into_iter().collect();
        assert!(distinct.len() > 150, "{}", distinct.len());
    }

    #[test]
    fn a_value_is_exchanged_whole() {
        let text = br#"{"a":{"b":[1,"]"]},"c":2}"#;
        let mut random = Random::new(1);
        let found: std::collections::BTreeSet<&[u8]> =
            (0..500).filter_map(|_| value(&mut random, text)).map(|place| &text[place]).collect();
        assert!(found.contains(&br#"{"b":[1,"]"]}"#[..]), "{found:?}");
        assert!(found.contains(&br#"[1,"]"]"#[..]) && found.contains(&b"2"[..]), "{found:?}");
    }
}
