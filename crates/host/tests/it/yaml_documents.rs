//! A YAML file as a tree: every node knows its line, and scalars keep their spelling.

use std::sync::Arc;

use switchboard_host::config::Problem;
use switchboard_host::config::document::{Content, Entry, Node, parse};

fn parsed(source: &str) -> Result<Node, Problem> {
    parse(&Arc::from("file.yaml"), source)
}

fn entry<'a>(node: &'a Node, key: &str) -> &'a Entry {
    let Content::Mapping(entries) = &node.content else { panic!("{node:?} is not a mapping") };
    entries.iter().find(|entry| entry.key == key).unwrap()
}

#[test]
fn every_node_knows_its_line_and_scalars_keep_their_spelling() {
    let source = "# a comment\nserver:\n  bind: 127.0.0.1:1\n  strictVersion: true\nodd: [1.10, '02', 0x1F, ~]\n";
    let root = parsed(source).unwrap();
    let server = entry(&root, "server");
    assert_eq!(server.origin.to_string(), "file.yaml:2");
    let strict = &entry(&server.value, "strictVersion").value;
    assert_eq!((strict.origin.to_string().as_str(), &strict.content), ("file.yaml:4", &Content::Text("true".into())));
    let Content::List(items) = &entry(&root, "odd").value.content else { panic!("not a list") };
    let texts: Vec<Content> = items.iter().map(|item| item.content.clone()).collect();
    let text = |text: &str| Content::Text(text.to_owned());
    assert_eq!(texts, [text("1.10"), text("02"), text("0x1F"), Content::Empty]);

    let root = parsed("a: &size 64KiB\nb:\n  c: *size\n").unwrap();
    let used = &entry(&entry(&root, "b").value, "c").value;
    assert_eq!(used.content, text("64KiB"));
    assert_eq!(used.origin.to_string(), "file.yaml:3", "an alias stands where it is used");
}

#[test]
fn an_empty_file_is_an_empty_configuration_and_broken_yaml_names_the_line() {
    for source in ["", "# only a comment\n"] {
        assert_eq!(parsed(source).unwrap().content, Content::Empty);
    }
    let problem = parsed("server:\n  bind: [1, 2\nstore: {}\n").unwrap_err().to_string();
    assert!(problem.starts_with("file.yaml:"), "{problem}");
    let problem = parsed("server: {}\nserver: {}\n").unwrap_err().to_string();
    assert!(problem.starts_with("file.yaml:2: ") && problem.contains("server"), "{problem}");
    assert!(parsed(&"[".repeat(10_000)).is_err());
}

#[test]
fn a_document_that_is_nested_deeper_than_its_limit_is_refused_where_it_is() {
    let lists = |depth: usize| format!("a:\n  {}{}\n", "[".repeat(depth), "]".repeat(depth));
    let mappings = |depth: usize| (0..depth).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<String>();
    assert!(parsed(&lists(23)).is_ok() && parsed(&mappings(24)).is_ok());
    let places = [(lists(24), "file.yaml:2: "), (lists(60), "file.yaml:2: "), (mappings(25), "file.yaml:25: ")];
    for (source, place) in places {
        let problem = parsed(&source).unwrap_err().to_string();
        assert!(problem.starts_with(place) && problem.contains("is nested deeper than 24 levels"), "{problem}");
    }
    // An alias repeats what is nested already.
    let inner = format!("a: &inner {}{}\n", "[".repeat(15), "]".repeat(15));
    let repeated = format!("{inner}b: {}*inner{}\n", "[".repeat(15), "]".repeat(15));
    let problem = parsed(&repeated).unwrap_err().to_string();
    assert!(problem.contains("is nested deeper than 24 levels"), "{problem}");
}
