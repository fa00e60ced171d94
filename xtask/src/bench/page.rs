//! One section of docs/performance.md put in the place of the one it had, so that a part can be measured by itself.

/// A page with a section instead of the one under the same heading, or before the first section if it has none.
pub(crate) fn replace(page: &str, heading: &str, section: &str) -> String {
    let (before, rest) = match page.find(heading) {
        Some(start) => page.split_at(start),
        None => page.split_at(page.find("\n## ").map_or(page.len(), |start| start + 1)),
    };
    let after = match rest.strip_prefix(heading) {
        Some(old) => old.find("\n## ").map_or("", |end| &old[end + 1..]),
        None => rest,
    };
    let separator = if after.is_empty() { "" } else { "\n" };
    format!("{before}{section}{separator}{after}")
}

#[cfg(test)]
mod tests {
    use super::replace;

    #[test]
    fn a_section_takes_its_own_place_and_no_other() {
        let heading = "## What is measured";
        let replaced = |page: &str| replace(page, heading, &format!("{heading}\n\nnew\n"));
        let page = format!("# Top\n\ntable\n\n{heading}\n\nold\n\n## Last\n\nend\n");
        let expected = format!("# Top\n\ntable\n\n{heading}\n\nnew\n\n## Last\n\nend\n");
        assert_eq!(replaced(&page), expected);
        assert_eq!(replaced(&expected), expected);
        assert_eq!(replaced("# Top\n\ntable\n\n## Last\n\nend\n"), expected);
        assert_eq!(replaced(&format!("# Top\n\n{heading}\nold")), format!("# Top\n\n{heading}\n\nnew\n"));
    }
}
