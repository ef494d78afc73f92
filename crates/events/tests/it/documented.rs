//! The examples of docs/traces.md are traces.

use verdict_events::Format;

use crate::traces::read;

const TRACES: &str = include_str!("../../../../docs/traces.md");

/// Language and text of each fenced block.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = page.split("```").collect();
    let fenced = parts.iter().skip(1).step_by(2);
    fenced.filter_map(|block| block.split_once('\n')).collect()
}

#[test]
fn every_example_is_read() {
    let mut formats = Vec::new();
    for (language, text) in blocks(TRACES) {
        let format: Format = language.parse().expect("blocks are named for formats");
        let (events, told) = read(format, text.as_bytes()).unwrap();
        assert!(events.len() >= 2, "{told:?}");
        formats.push(format);
    }
    for format in Format::ALL {
        assert!(
            format == Format::Native || formats.contains(&format),
            "{format} has no example"
        );
    }
}

#[test]
fn the_page_names_every_format_and_event() {
    for name in Format::ALL.map(Format::name) {
        assert!(TRACES.contains(&format!("| `{name}` |")), "{name}");
    }
    for name in verdict_events::EventKind::NAMES {
        assert!(TRACES.contains(&format!("`{name}`")), "{name}");
    }
}
