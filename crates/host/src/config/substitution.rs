//! `${VAR}` and `${VAR:-default}` in the values of a file, filled in when the file is loaded.
//! It works on the parsed tree, not on the text, so that no variable's content can change the shape of the file.
//! `$${` stands for a plain `${`.

use std::collections::BTreeMap;

use crate::config::document::{Content, Node};
use crate::config::problem::{Mismatch, Problem};

/// Fills in every value below `node`. A value that cannot be filled in is marked, so that it is reported once.
pub fn substitute(node: &mut Node, variables: &BTreeMap<String, String>, problems: &mut Vec<Problem>) {
    walk(node, "", variables, problems);
}

fn walk(node: &mut Node, path: &str, variables: &BTreeMap<String, String>, problems: &mut Vec<Problem>) {
    match &mut node.content {
        Content::Empty | Content::Reported => {}
        Content::Text(text) => match filled(text, variables) {
            Ok(None) => {}
            Ok(Some(filled)) => *text = filled,
            Err(mismatch) => {
                problems.push(Problem::new(node.origin.clone(), path, mismatch));
                node.content = Content::Reported;
            }
        },
        Content::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, &format!("{path}[{index}]"), variables, problems);
            }
        }
        Content::Mapping(entries) => {
            for entry in entries.iter_mut() {
                let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
                walk(&mut entry.value, &path, variables, problems);
            }
        }
    }
}

/// The text with its variables filled in; nothing when there are none.
fn filled(text: &str, variables: &BTreeMap<String, String>) -> Result<Option<String>, Mismatch> {
    if !text.contains("${") {
        return Ok(None);
    }
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if rest[..start].ends_with('$') {
            output.push_str(&rest[..start]);
            output.push('{');
            rest = &rest[start + 2..];
            continue;
        }
        output.push_str(&rest[..start]);
        let Some(length) = rest[start..].find('}') else {
            return Err(Mismatch::new(
                format!("\"{text}\" opens ${{ and does not close it"),
                "write ${NAME} or ${NAME:-default}",
            ));
        };
        output.push_str(&value(&rest[start + 2..start + length], variables)?);
        rest = &rest[start + length + 1..];
    }
    output.push_str(rest);
    Ok(Some(output))
}

fn value(expression: &str, variables: &BTreeMap<String, String>) -> Result<String, Mismatch> {
    let (name, default) = match expression.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (expression, None),
    };
    let well_formed = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if !well_formed {
        return Err(Mismatch::new(
            format!("\"{name}\" is not a variable name"),
            "write ${NAME} or ${NAME:-default}, with letters, digits and _ only",
        ));
    }
    match (variables.get(name), default) {
        (Some(value), None) => Ok(value.clone()),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value.clone()),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(Mismatch::new(
            format!("the environment variable {name} is not set"),
            format!("set it, or write ${{{name}:-default}}"),
        )),
    }
}
