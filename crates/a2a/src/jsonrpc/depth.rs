//! A guard against bodies that are all brackets.

use memchr::{memchr, memmem};

/// What the names begin with under which `serde_json` passes raw values to itself. Where it reads a `Value`, it reads the
/// string under such a name as JSON, at whatever depth: a body may bring its own, and in that string another one, until the
/// stack is used up.
const PRIVATE: &str = "$serde_json::private::";

/// Whether objects and arrays are nested deeper than `limit` anywhere in the JSON text, or so that their depth cannot be
/// counted, see [`hides_nesting`]. No allocation in an ordinary text; one that is not JSON gives some answer and is refused
/// later by the reader.
pub fn depth_exceeds(json: &[u8], limit: usize) -> bool {
    is_deeper(json, limit) || hides_nesting(json)
}

/// Whether a member has a name that makes `serde_json` read a string as JSON.
pub(crate) fn hides_nesting(json: &[u8]) -> bool {
    // Most values that are read are a text or a number, which have no members.
    if memchr(b'{', json).is_none() {
        return false;
    }
    // The first character of a name as itself or escaped: there is no third way to write it.
    [&br#""$"#[..], br#""\u0024"#]
        .into_iter()
        .any(|start| memmem::find_iter(json, start).any(|at| is_private(&json[at..])))
}

/// Whether a text that begins with a quote begins with the name of a member, and such a one. Nearly every text differs in its
/// first characters, so a body of nothing but quotes costs no more than any other.
fn is_private(json: &[u8]) -> bool {
    let mut rest = json.get(1..).unwrap_or_default();
    for expected in PRIVATE.bytes() {
        rest = match rest {
            [byte, rest @ ..] if *byte == expected => rest,
            [b'\\', b'u', b'0', b'0', high, low, rest @ ..] if is_hex([*high, *low], expected) => rest,
            _ => return false,
        };
    }
    // Longer than what is left of any of them, with every character escaped.
    let rest = &rest[..rest.len().min(256)];
    let Some(end) = memchr(b'"', rest) else { return true };
    // In a string, where someone speaks of such names, the quotes are escaped.
    let is_escaped = rest[..end].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    !is_escaped && rest[end + 1..].trim_ascii_start().first().is_none_or(|next| *next == b':')
}

fn is_hex(digits: [u8; 2], byte: u8) -> bool {
    std::str::from_utf8(&digits).is_ok_and(|digits| u8::from_str_radix(digits, 16) == Ok(byte))
}

fn is_deeper(json: &[u8], limit: usize) -> bool {
    // Most messages open fewer brackets than may be open at once, and counting them costs next to nothing.
    if openings(json) <= limit {
        return false;
    }
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    for byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// How many objects and arrays may begin here, strings included. Counted in bytes by the piece, as processors like it.
fn openings(json: &[u8]) -> usize {
    let of_piece = |piece: &[u8]| piece.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    json.chunks(usize::from(u8::MAX)).map(|piece| usize::from(of_piece(piece))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body of the kind that ends a process: brackets within strings within strings.
    fn bomb(levels: usize, name: &str) -> String {
        (0..levels).fold("1".to_owned(), |inner, _| {
            let mut escaped = format!("{}{inner}{}", "[".repeat(100), "]".repeat(100));
            for (character, written) in [('\\', r"\u005c"), ('"', r"\u0022"), ('[', r"\u005b"), ('\n', r"\u000a")] {
                escaped = escaped.replace(character, written);
            }
            format!("{{{name}:\"{escaped}\"}}")
        })
    }

    #[test]
    fn nesting_that_is_hidden_in_strings_is_found_however_its_name_is_written() {
        let escaped = |text: &str| text.bytes().map(|byte| format!("\\u{byte:04x}")).collect::<String>();
        let name = "$serde_json::private::RawValue";
        for name in
            [name.to_owned(), escaped(name), format!("${}", escaped(&name[1..])), "$serde_json::private::Number".into()]
        {
            for space in ["", " \n"] {
                let json = bomb(30, &format!("\"{name}\"{space}"));
                assert!(depth_exceeds(json.as_bytes(), 64), "{name}");
                assert!(crate::Json::parse(&json).unwrap().read::<serde_json::Value>().is_err(), "{name}");
            }
        }
    }

    #[test]
    fn a_text_that_speaks_of_such_names_is_one_like_any_other() {
        for json in [
            r#"{"text":"$serde_json::private::RawValue"}"#,
            r#"["$serde_json::private::RawValue", ":"]"#,
            r#"{"text":"{\"$serde_json::private::RawValue\": 1}"}"#,
            r#"{"$ref":"$serde_json::private::RawValue","$schema":1}"#,
            r#"{"price\"$":1}"#,
        ] {
            assert!(!depth_exceeds(json.as_bytes(), 64), "{json}");
            crate::Json::parse(json).unwrap().read::<serde_json::Value>().unwrap();
        }
    }
}
