//! Guesses what a mistyped key, value or variable was meant to be.
//! Case, `-` and `_` do not count, because `max_age` for `maxAge` is the commonest slip of all.

/// The candidate that `word` was most likely meant to be, if one is near enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word);
    let allowed = (word.len() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The hint after a wrong word: the likely candidate, or all of them.
pub fn did_you_mean(word: &str, candidates: &[&str], all: &str) -> String {
    match nearest(word, candidates.iter().copied()) {
        Some(candidate) => format!("did you mean {candidate}?"),
        None => format!("{all} {}", candidates.join(", ")),
    }
}

fn plain(word: &str) -> Vec<char> {
    // A word of a configuration is short; a longer one is compared by its beginning so that the table stays small.
    word.chars().filter(|letter| !matches!(letter, '-' | '_')).flat_map(char::to_lowercase).take(64).collect()
}

/// Edits (insert, delete, replace, swap two neighbours) that turn one word into the other.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before_previous = vec![0; right.len() + 1];
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (row, left_letter) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, right_letter) in right.iter().enumerate() {
            let replaced = previous[column] + usize::from(left_letter != right_letter);
            let mut best = replaced.min(previous[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && left[row - 1] == *right_letter && *left_letter == right[column - 1];
            if swapped {
                best = best.min(before_previous[column - 1] + 1);
            }
            current.push(best);
        }
        before_previous = previous;
        previous = current;
    }
    previous[right.len()]
}
