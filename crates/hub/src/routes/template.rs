//! Texts with values of an event in them: `{{ source.agent }} failed: {{ text | truncate(200) }}`. The syntax is a part of
//! Jinja's: values and filters, nothing that repeats or decides. So the time and the memory that a template takes follow
//! from its length, and what others have written into an event is a value and never a template.

mod filter;
mod parse;
mod value;

use serde_json::Value;

use self::filter::Filter;
pub(crate) use self::parse::TemplateError;

/// Values that a text may have: each may be as long as all of the content.
const MOST_VALUES: usize = 100;
/// Filters behind one another: some make their text longer.
const MOST_FILTERS: usize = 8;

/// A text with values in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Value(Expression),
}

/// What stands between `{{` and `}}`.
#[derive(Clone, Debug, PartialEq)]
struct Expression {
    of: Operand,
    filters: Vec<Filter>,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Literal(String),
    /// Members from the outermost one on; of a list they are numbers.
    Path(Vec<String>),
}

impl Template {
    /// Reads a template over values with these names.
    pub(crate) fn parse(text: &str, names: &[&str]) -> Result<Self, TemplateError> {
        parse::template(text, names).map(Self)
    }

    /// Fills in the values. What does not fit into what is left of the room is cut.
    pub(crate) fn render(&self, values: &Value, room: &mut Room) -> String {
        let mut rendered = String::new();
        for piece in &self.0 {
            if room.is_full() {
                break;
            }
            match piece {
                Piece::Text(text) => room.push(&mut rendered, text),
                Piece::Value(expression) => room.push(&mut rendered, &expression.text(values, room.0)),
            }
        }
        rendered
    }
}

impl Expression {
    fn text(&self, values: &Value, most: usize) -> String {
        let found = match &self.of {
            Operand::Literal(text) => {
                return self.filters.iter().fold(text.clone(), |text, next| next.apply(text, most));
            }
            Operand::Path(path) => value::at(values, path),
        };
        let (first, rest) = match self.filters.split_first() {
            Some((Filter::Json, rest)) => (found.to_string(), rest),
            _ => (value::text(found), self.filters.as_slice()),
        };
        rest.iter().fold(first, |text, next| next.apply(text, most))
    }
}

/// How many bytes may still be made for an event.
pub(crate) struct Room(pub(crate) usize);

impl Room {
    pub(crate) fn is_full(&self) -> bool {
        self.0 == 0
    }

    /// Adds a text. One that does not fit is cut, and nothing fits after it.
    fn push(&mut self, to: &mut String, text: &str) {
        if text.len() <= self.0 {
            to.push_str(text);
            self.0 -= text.len();
            return;
        }
        to.push_str(&text[..text.floor_char_boundary(self.0)]);
        to.push('…');
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NAMES: [&str; 4] = ["topic", "text", "payload", "source"];

    fn rendered(template: &str, values: &Value) -> String {
        Template::parse(template, &NAMES)
            .map_or_else(|error| error.to_string(), |it| it.render(values, &mut Room(1_000)))
    }

    #[test]
    fn values_are_filled_in_and_never_read_as_a_template() {
        let values = json!({
            "topic": "task.failed.echo",
            "text": "{{ topic }} {% raw %} \"quoted\" <!channel> & more",
            "payload": { "list": [{ "a-b": 1.5 }, true, null], "switchboard/usage": { "tokens": 7 } },
            "source": {},
        });
        for (template, right) in [
            ("{{topic}}: {{ topic | upper }}!", "task.failed.echo: TASK.FAILED.ECHO!"),
            ("{{ text }}", "{{ topic }} {% raw %} \"quoted\" <!channel> & more"),
            ("{{ text | slack | truncate(30) }}", "{{ topic }} {% raw %} \"quoted\"…"),
            ("{{ text | truncate(200) | slack }}", "{{ topic }} {% raw %} \"quoted\" &lt;!channel&gt; &amp; more"),
            ("{{ payload.list.0.a-b }} {{ payload.list[1] }} {{ payload.list.2 }}.", "1.5 true ."),
            ("{{ payload[\"switchboard/usage\"].tokens }}", "7"),
            ("{{ payload.list | json }}", "[{\"a-b\":1.5},true,null]"),
            ("{{ payload.list }}", "[{\"a-b\":1.5},true,null]"),
            ("{{ topic | json }}", "\"task.failed.echo\""),
            ("{{ source.agent | default(\"nobody\") }} {{ payload.no.such }}", "nobody "),
            ("{{ \"{{\" }} }} { {", "{{ }} { {"),
            ("{{ \"a\\\"b\" | upper }}{{ ' x ' | trim }}", "A\"Bx"),
            ("", ""),
        ] {
            assert_eq!(rendered(template, &values), right, "{template}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused_with_what_would_be_right() {
        for (template, part) in [
            ("{{ topic", "no }}"),
            ("{{ }}", "a name"),
            ("{{ secret }}", "\"secret\" is no value here in"),
            ("{{ other }}", "topic, text, payload and source are"),
            ("{{ topic | shell }}", "\"shell\" is no filter"),
            ("{{ topic | truncate }}", "truncate takes a number"),
            ("{{ topic | truncate(-1) }}", "truncate takes a number"),
            ("{{ topic | upper(1) }}", "upper takes nothing"),
            ("{{ topic ~ topic }}", "one value and its filters"),
            ("{{ topic() }}", "one value and its filters"),
            ("{{ payload..a }}", "a name"),
            ("{{ payload[a] }}", "a number or a quoted name"),
            ("{{ \"open }}", "closed"),
            ("{% for a in payload %}", "{{ }} alone"),
            ("{# note #}", "{{ }} alone"),
        ] {
            let refused = rendered(template, &json!({}));
            assert!(refused.contains(part), "{template}: {refused}");
        }
        assert!(rendered(&"{{topic}}".repeat(MOST_VALUES + 1), &json!({})).contains("at most 100"));
        let filters = "| json".repeat(MOST_FILTERS + 1);
        assert!(rendered(&format!("{{{{ topic {filters} }}}}"), &json!({})).contains("at most 8"));
    }

    #[test]
    fn no_template_makes_more_than_there_is_room_for() {
        let values = json!({ "topic": "é".repeat(500), "text": "\"\\".repeat(500) });
        let doubling = "{{ text | json | json | json | json | json | json | json | json }}";
        for template in ["{{ topic }}".repeat(100), doubling.repeat(100), "x".repeat(5_000)] {
            let template = Template::parse(&template, &NAMES).unwrap_or_else(|error| panic!("{error}"));
            for most in [0, 1, 9, 100, 1_000] {
                let mut room = Room(most);
                let text = template.render(&values, &mut room);
                assert!(text.len() <= most + "…".len(), "{} of {most}", text.len());
                assert!(room.is_full());
            }
        }
    }
}
