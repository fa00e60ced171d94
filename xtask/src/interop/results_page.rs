//! interop/RESULTS.md: what works between each SDK and Switchboard. The page is generated from a run and read back as
//! the expectation for the next one: a check that is on it must have run, and a check that ran must be on it.

use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::interop::catalogue::{Catalogue, Texts};
use crate::interop::matrix::Pair;
use crate::results::Names;

/// The names of the checks by SDK and part: `python-1.3.0 server`.
pub(crate) type Expected = BTreeMap<String, Names>;

pub(crate) const PATH: &str = "interop/RESULTS.md";

const HEAD: &str = "\
# Interoperability results

Made by `cargo xtask interop --write` from a run of the tests, which [README.md](README.md) describes. The titles are in
`operations.json` and the notes in `notes.json` of each SDK's folder; `cargo xtask docs` writes the page with new ones.

`yes`: the operation works. `refused`: the server does not offer it and says so in a way that a program can act on.
`broken`: the server offers it and gets it wrong, see the notes. `–`: the SDK has no such call on any binding. Where the
interfaces of an SDK differ, the cell names them; an interface that it does not name has no such call.

";

/// The parts of the page with their headings.
const PARTS: [(&str, &str); 6] = [
    ("client", "SDK clients call our server"),
    (HUB, "SDK clients call SDK servers through the hub"),
    ("remote", "SDK servers behind the hub are left and killed"),
    ("server", "Our client calls SDK servers"),
    ("commands", "Our commands call SDK servers"),
    (CONFORMANCE, "What `switchboard conformance` finds"),
];

const CONFORMANCE: &str = "conformance";

const HUB: &str = "hub";

/// What stands between the interface of a client and the one of the server that it reaches through the hub.
const THROUGH: char = '>';

/// Says how the part about the hub is to be read.
const THROUGH_HUB: &str = "\
Each client has called each server through the hub: with each of its interfaces, which stand before the `>`, and by each
interface of the server, which stand after it. `x>` in a cell is x with all servers, `>y` is y with all interfaces of the client.

";

const FINDINGS: &str = "\
Each row is a check that fails: the first word of the text that the agent was sent, then the check of
[docs/checking.md](../docs/checking.md). One that ends in a question mark fails now and then.
";

/// How a check can succeed, and the end of its name in that case.
const OUTCOMES: [(&str, &str); 3] = [("yes", ""), ("refused", "-refused"), ("broken", "-broken")];

const NONE: &str = "–";

/// One line for each check that is not in both.
pub(crate) fn differences(expected: &Names, ran: &Names) -> Vec<String> {
    let missing = expected.difference(ran).filter(|name| !name.ends_with('?'));
    let missing = missing.map(|name| format!("{name} is in {PATH} and did not run"));
    let unknown = ran.difference(expected).filter(|name| !expected.contains(&format!("{name}?")));
    let unknown = unknown.map(|name| format!("{name} ran and is not in {PATH}"));
    missing.chain(unknown).collect()
}

pub(crate) fn render(expected: &Expected, catalogue: &Catalogue) -> anyhow::Result<String> {
    let mut page = HEAD.to_owned();
    page.push_str("| folder | SDK |\n|---|---|\n");
    for sdk in &catalogue.sdks {
        writeln!(page, "| `{}` | {} |", sdk.folder, sdk.notes.sdk)?;
    }
    for (part, heading) in PARTS {
        write!(page, "\n## {heading}\n\n")?;
        for sdk in &catalogue.sdks {
            if let Some(note) = sdk.notes.parts.get(part) {
                writeln!(page, "- `{}`: {}", sdk.folder, text(note)?)?;
            }
        }
        if catalogue.sdks.iter().any(|sdk| sdk.notes.parts.contains_key(part)) {
            page.push('\n');
        }
        if part == HUB {
            page.push_str(THROUGH_HUB);
        }
        match catalogue.operations.get(part) {
            Some(titles) => render_matrix(&mut page, part, titles, expected, catalogue)?,
            None => render_findings(&mut page, expected, catalogue)?,
        }
    }
    Ok(page)
}

/// One row for each check, one column for each SDK.
fn render_matrix(
    page: &mut String,
    part: &str,
    titles: &Texts,
    expected: &Expected,
    catalogue: &Catalogue,
) -> anyhow::Result<()> {
    let mut columns = Vec::new();
    for sdk in &catalogue.sdks {
        if let Some(names) = expected.get(&format!("{} {part}", sdk.folder)) {
            columns.push((sdk.folder, Column::new(part, names)?));
        }
    }
    let operations: BTreeSet<&str> = columns.iter().flat_map(|(_, column)| column.outcomes.keys().copied()).collect();
    let titled: BTreeSet<&str> = titles.keys().map(String::as_str).collect();
    if let Some(operation) = operations.symmetric_difference(&titled).next() {
        anyhow::bail!("the check {operation} must be both in interop/operations.json, under {part}, and in a run");
    }
    let folders: Vec<String> = columns.iter().map(|(folder, _)| format!("`{folder}`")).collect();
    writeln!(page, "| check | what it does | {} |\n|---|---{}|", folders.join(" | "), "|---".repeat(columns.len()))?;
    let interfaces: Vec<String> = columns.iter().map(|(_, column)| column.interfaces()).collect();
    writeln!(page, "| {NONE} | interfaces | {} |", interfaces.join(" | "))?;
    for (operation, title) in titles {
        let cells: Vec<String> = columns.iter().map(|(_, column)| column.cell(operation)).collect();
        writeln!(page, "| `{operation}` | {} | {} |", text(title)?, cells.join(" | "))?;
    }
    Ok(())
}

fn render_findings(page: &mut String, expected: &Expected, catalogue: &Catalogue) -> anyhow::Result<()> {
    write!(page, "{FINDINGS}\n| SDK | check | why it fails |\n|---|---|---|\n")?;
    for sdk in &catalogue.sdks {
        let names = expected.get(&format!("{} {CONFORMANCE}", sdk.folder)).cloned().unwrap_or_default();
        let explained: Names = sdk.notes.findings.keys().cloned().collect();
        if let Some(name) = names.symmetric_difference(&explained).next() {
            anyhow::bail!("the finding {name} must be both in interop/{}/notes.json and in a run", sdk.folder);
        }
        for (name, reason) in &sdk.notes.findings {
            writeln!(page, "| `{}` | `{name}` | {} |", sdk.folder, text(reason)?)?;
        }
    }
    Ok(())
}

fn text(value: &serde_json::Value) -> anyhow::Result<&str> {
    value.as_str().with_context(|| format!("not a text: {value}"))
}

/// The results of one SDK in one part of the page.
struct Column<'a> {
    interfaces: BTreeSet<&'a str>,
    /// By check, then by interface.
    outcomes: BTreeMap<&'a str, BTreeMap<&'a str, &'static str>>,
}

impl<'a> Column<'a> {
    fn new(part: &str, names: &'a Names) -> anyhow::Result<Self> {
        let mut column = Self { interfaces: BTreeSet::new(), outcomes: BTreeMap::new() };
        for name in names {
            let (interface, operation, outcome) =
                split(part, name).with_context(|| format!("{name} does not begin with an interface"))?;
            column.interfaces.insert(interface);
            column.outcomes.entry(operation).or_default().insert(interface, outcome);
        }
        Ok(column)
    }

    fn interfaces(&self) -> String {
        let (clients, servers) = sides(&self.interfaces);
        let all = self.interfaces.iter().copied().collect::<Vec<_>>().join(" ");
        let product = [clients, servers].map(|side| side.into_iter().collect::<Vec<_>>().join(" "));
        let product = product.join(" > ");
        if product_of(&product)
            .is_some_and(|names| names.iter().map(String::as_str).eq(self.interfaces.iter().copied()))
        {
            product
        } else {
            all
        }
    }

    /// Interfaces of this column, with one word for all that one side has.
    fn shortened(&self, some: &BTreeSet<&str>) -> Vec<String> {
        let (clients, servers) = sides(&self.interfaces);
        let starts = clients.iter().map(|client| format!("{client}{THROUGH}"));
        let ends = servers.iter().map(|server| format!("{THROUGH}{server}"));
        let mut left = some.clone();
        let mut words = Vec::new();
        for word in starts.chain(ends) {
            let meant: BTreeSet<&str> =
                self.interfaces.iter().copied().filter(|interface| is_meant(&word, interface)).collect();
            if meant.is_subset(some) && !meant.is_disjoint(&left) {
                left.retain(|interface| !meant.contains(interface));
                words.push(word);
            }
        }
        words.extend(left.into_iter().map(str::to_owned));
        words
    }

    fn cell(&self, operation: &str) -> String {
        let Some(outcomes) = self.outcomes.get(operation) else { return NONE.to_owned() };
        let mut groups = Vec::new();
        for (outcome, _) in OUTCOMES {
            let interfaces = outcomes.iter().filter(|(_, found)| **found == outcome).map(|(interface, _)| *interface);
            let interfaces: BTreeSet<&str> = interfaces.collect();
            if interfaces.len() == self.interfaces.len() {
                return outcome.to_owned();
            }
            if !interfaces.is_empty() {
                groups.push(format!("{outcome}: {}", self.shortened(&interfaces).join(" ")));
            }
        }
        groups.join("; ")
    }
}

/// The interfaces of clients and of servers, where a name has both.
fn sides<'a>(interfaces: &BTreeSet<&'a str>) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
    interfaces.iter().filter_map(|interface| interface.split_once(THROUGH)).unzip()
}

/// All names of two sides, which are written once; nothing if a text is a plain list of names.
fn product_of(text: &str) -> Option<BTreeSet<String>> {
    let (clients, servers) = text.split_once(" > ")?;
    let servers: Vec<&str> = servers.split(' ').collect();
    let names =
        clients.split(' ').flat_map(|client| servers.iter().map(move |server| format!("{client}{THROUGH}{server}")));
    Some(names.collect())
}

/// Whether a word stands for an interface, by itself or with others.
fn is_meant(word: &str, interface: &str) -> bool {
    match (word.strip_suffix(THROUGH), word.strip_prefix(THROUGH)) {
        (Some(client), _) => interface.split_once(THROUGH).is_some_and(|(start, _)| start == client),
        (_, Some(server)) => interface.split_once(THROUGH).is_some_and(|(_, end)| end == server),
        _ => word == interface,
    }
}

/// The interface, the check and the outcome of a name such as `jsonrpc-card` or `rest-0.3-list-broken`.
fn split<'a>(part: &str, name: &'a str) -> Option<(&'a str, &'a str, &'static str)> {
    let binding = name.find('-')?;
    let has_version = name[binding + 1..].starts_with(|character: char| character.is_ascii_digit());
    let end = if has_version { binding + 1 + name[binding + 1..].find('-')? } else { binding };
    let (interface, operation) = (&name[..end], &name[end + 1..]);
    // The tests of SDK clients have one outcome, and may be about something that is refused.
    for (outcome, suffix) in OUTCOMES.iter().skip(1).filter(|_| part != "client") {
        if let Some(operation) = operation.strip_suffix(suffix) {
            return Some((interface, operation, outcome));
        }
    }
    Some((interface, operation, OUTCOMES[0].0))
}

/// The operations of a client by its interface, whatever it calls through the hub.
pub(super) fn client_operations<'a>(expected: &'a Expected, folder: &str) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut operations: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for name in expected.get(&format!("{folder} {HUB}")).into_iter().flatten() {
        let client = split(HUB, name).and_then(|(pair, operation, _)| Some((pair.split_once(THROUGH)?.0, operation)));
        if let Some((client, operation)) = client {
            operations.entry(client).or_default().insert(operation);
        }
    }
    operations
}

/// What is expected of one SDK in one part where only these pairs were run: less of what goes through the hub.
pub(super) fn of_pairs(heading: &str, expected: &Names, pairs: &[Pair]) -> Names {
    let Some((folder, HUB)) = heading.split_once(' ') else { return expected.clone() };
    let run: BTreeSet<String> = pairs.iter().filter(|pair| pair.client == folder).map(Pair::interface).collect();
    let is_run = |name: &&String| split(HUB, name).is_some_and(|(pair, ..)| run.contains(pair));
    expected.iter().filter(is_run).cloned().collect()
}

/// Reads a page back. What it cannot read is missing from the result, and so a difference.
pub(crate) fn parse(page: &str) -> Expected {
    let mut expected = Expected::new();
    let mut part = "";
    let mut folders: Vec<&str> = Vec::new();
    let mut interfaces: Vec<BTreeSet<String>> = Vec::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            part = PARTS.iter().find(|(_, known)| *known == heading).map_or("", |(part, _)| part);
        }
        let Some(row) = line.strip_prefix("| ").and_then(|row| row.strip_suffix(" |")) else { continue };
        let cells: Vec<&str> = row.split(" | ").map(|cell| cell.trim().trim_matches('`')).collect();
        match cells.as_slice() {
            [_, name, _] if part == CONFORMANCE && *name != "check" => {
                expected.entry(format!("{} {part}", cells[0])).or_default().insert((*name).to_owned());
            }
            ["check", _, named @ ..] => folders = named.to_vec(),
            [NONE, "interfaces", named @ ..] => {
                let plain = |cell: &str| cell.split(' ').map(str::to_owned).collect();
                interfaces = named.iter().map(|cell| product_of(cell).unwrap_or_else(|| plain(cell))).collect();
            }
            [operation, _, results @ ..] if !part.is_empty() => {
                for ((folder, interfaces), cell) in folders.iter().zip(&interfaces).zip(results) {
                    let names = expected.entry(format!("{folder} {part}")).or_default();
                    names.extend(names_in(cell, operation, interfaces));
                }
            }
            _ => {}
        }
    }
    expected
}

fn names_in(cell: &str, operation: &str, all: &BTreeSet<String>) -> Names {
    let mut names = Names::new();
    for group in cell.split("; ") {
        let (outcome, words) = match group.split_once(": ") {
            Some((outcome, words)) => (outcome, Some(words.split(' ').collect::<Vec<_>>())),
            None => (group, None),
        };
        let is_named =
            |interface: &&String| words.as_ref().is_none_or(|words| words.iter().any(|word| is_meant(word, interface)));
        if let Some((_, suffix)) = OUTCOMES.iter().find(|(known, _)| *known == outcome) {
            let interfaces = all.iter().filter(is_named);
            names.extend(interfaces.map(|interface| format!("{interface}-{operation}{suffix}")));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::SDKS;
    use crate::program;

    fn names<const N: usize>(names: [&str; N]) -> Names {
        names.map(str::to_owned).into()
    }

    #[test]
    fn the_page_is_what_would_be_written() {
        let page = std::fs::read_to_string(program::root().join(PATH)).unwrap();
        let expected = parse(&page);
        assert_eq!(expected.len(), 6 * SDKS.len() - 2, "the official SDK has no client here: {:?}", expected.keys());
        assert!(expected.values().map(Names::len).sum::<usize>() > 4_000, "checks are missing");
        let written = render(&expected, &Catalogue::read().unwrap()).unwrap();
        assert!(page == written, "{PATH} is out of date: run `cargo xtask docs`");
        assert!(!written.contains("\n\n\n"), "no two lines in a row are blank");
    }

    #[test]
    fn cells_and_names_are_the_same() {
        let all = ["jsonrpc-0.3", "rest-0.3"].map(str::to_owned).into();
        let names = names([
            "jsonrpc-0.3-card",
            "jsonrpc-0.3-get",
            "jsonrpc-0.3-list-refused",
            "jsonrpc-0.3-only",
            "rest-0.3-card",
            "rest-0.3-get-broken",
            "rest-0.3-list-refused",
        ]);
        let column = Column::new("server", &names).unwrap();
        let cells = [
            ("card", "yes"),
            ("get", "yes: jsonrpc-0.3; broken: rest-0.3"),
            ("list", "refused"),
            ("only", "yes: jsonrpc-0.3"),
            ("other", "–"),
        ];
        let mut read = Names::new();
        for (operation, cell) in cells {
            assert_eq!(column.cell(operation), cell);
            read.extend(names_in(cell, operation, &all));
        }
        assert_eq!(read, names);
        assert_eq!(split("client", "rest-error-push-refused"), Some(("rest", "error-push-refused", "yes")));
    }

    #[test]
    fn what_one_side_has_with_all_of_the_other_is_one_word() {
        let (clients, servers) = (["jsonrpc-1.0", "rest-1.0"], ["js@1.3.0/rest@0.3", "python@1.3.0/rest@1.0"]);
        let pairs = clients.iter().flat_map(|client| servers.iter().map(move |server| format!("{client}>{server}")));
        let pairs: BTreeSet<String> = pairs.collect();
        let mut all: Names = pairs.iter().map(|pair| format!("{pair}-get")).collect();
        all.extend(servers.map(|server| format!("jsonrpc-1.0>{server}-list")));
        all.extend(clients.map(|client| format!("{client}>{}-push", servers[1])));
        all.insert(format!("{}>{}-push", clients[1], servers[0]));
        all.insert(format!("{}>{}-file-broken", clients[0], servers[0]));
        let column = Column::new(HUB, &all).unwrap();
        assert_eq!(column.interfaces(), format!("{} > {}", clients.join(" "), servers.join(" ")));
        assert_eq!(product_of(&column.interfaces()), Some(pairs.clone()));
        let mut read = Names::new();
        for (operation, cell) in [
            ("get", "yes".to_owned()),
            ("list", "yes: jsonrpc-1.0>".to_owned()),
            ("push", format!("yes: rest-1.0> >{}", servers[1])),
            ("file", format!("broken: {}>{}", clients[0], servers[0])),
        ] {
            assert_eq!(column.cell(operation), cell);
            read.extend(names_in(&cell, operation, &pairs));
        }
        assert_eq!(read, all);
    }

    #[test]
    fn a_missing_check_and_an_unexpected_one_are_both_named() {
        let lines = differences(&names(["a", "b"]), &names(["b", "c"]));
        assert_eq!(lines, ["a is in interop/RESULTS.md and did not run", "c ran and is not in interop/RESULTS.md"]);
        assert!(differences(&names(["a"]), &names(["a"])).is_empty());
    }

    #[test]
    fn what_is_a_matter_of_chance_may_run_or_not() {
        assert!(differences(&names(["a?", "b?"]), &names(["a"])).is_empty());
        assert_eq!(differences(&names(["a?"]), &names(["c"])), ["c ran and is not in interop/RESULTS.md"]);
    }
}
