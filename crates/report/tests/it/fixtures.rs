//! Findings that were made up by hand.

use verdict_findings::ProgramFindings;

const ONE_OF_EACH: &str = include_str!("one_of_each.json");

/// One race of each class, one that was not confirmed, and a suppressed one.
pub fn one_of_each() -> ProgramFindings {
    ProgramFindings::from_json(ONE_OF_EACH.as_bytes()).unwrap()
}

/// The same program without races.
pub fn none() -> ProgramFindings {
    let mut findings = one_of_each();
    findings.races.clear();
    findings.coverage.clear();
    findings
}

/// Every text of the findings replaced by this one.
pub fn all_called(text: &str) -> ProgramFindings {
    let mut value: serde_json::Value = serde_json::from_str(ONE_OF_EACH).unwrap();
    rename(&mut value, text);
    let mut findings = ProgramFindings::from_json(value.to_string().as_bytes()).unwrap();
    findings.predictions.clone_from(&findings.races);
    findings
}

/// The words that the schema itself defines.
const FIXED: [&str; 11] = [
    "schema", "access", "conflict", "kind", "mode", "class", "outcome", "label", "order", "id",
    "until",
];

fn rename(value: &mut serde_json::Value, text: &str) {
    match value {
        serde_json::Value::String(old) => *old = text.to_owned(),
        serde_json::Value::Array(values) => values.iter_mut().for_each(|value| rename(value, text)),
        serde_json::Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if !FIXED.contains(&name.as_str()) {
                    rename(value, text);
                }
            }
        }
        _ => {}
    }
}

/// Names that break what is not careful.
pub fn hostile_names() -> Vec<String> {
    vec![
        "</script><script>document.title='owned'</script>".to_owned(),
        "\"'><img src=x onerror=alert(1)>&amp;".to_owned(),
        "first\nsecond\r\n::error file=x::owned\u{2028}\u{2029}".to_owned(),
        "\u{1b}[31mred\u{1b}]0;title\u{7}\u{202e}\0\u{9b}".to_owned(),
        verdict_findings::text_of_bytes(b"/tmp/\xff\xfe caf\xe9/%20 \\x41"),
        format!(
            "std::map<{}>::operator[]",
            "std::pair<int, long>, ".repeat(500)
        ),
        "no_spaces_at_all_".repeat(640),
        String::new(),
    ]
}
