//! Places, as SARIF wants them.

use serde_json::{Value, json};
use verdict_findings::{Access, Frame, ProgramFindings, Step};

use crate::plain::one_line;
use crate::words;

pub(super) fn message(text: &str) -> Value {
    json!({"text": one_line(text)})
}

/// What is known of a place in the program.
#[derive(Default)]
struct Place<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    function: Option<&'a str>,
    /// Where in which binary, where there is no source.
    binary: Option<(&'a str, u64)>,
    source: Option<&'a str>,
}

pub(super) fn access_location(access: &Access, findings: &ProgramFindings) -> Value {
    let line = access.line.unwrap_or(0);
    let place = Place {
        file: access.file.as_deref(),
        line: access.line,
        column: access.column,
        function: access.function.as_deref(),
        binary: Some((&access.module, access.offset)),
        source: access.source.as_ref().and_then(|source| source.line(line)),
    };
    let what = format!(
        "{} by {}",
        words::access(access),
        words::thread(findings, access.thread)
    );
    location(&place, &what)
}

pub(super) fn frame_location(frame: &Frame) -> Value {
    let place = Place {
        file: frame.file.as_deref(),
        line: frame.line,
        column: frame.column,
        function: frame.function.as_deref(),
        binary: Some((&frame.module, frame.offset)),
        source: None,
    };
    location(&place, &words::frame(frame))
}

pub(super) fn step_location(step: &Step) -> Value {
    let place = Place {
        file: step.file.as_deref(),
        line: step.line,
        function: step.function.as_deref(),
        source: step.source.as_deref(),
        ..Place::default()
    };
    location(&place, &words::sentence(&step.text))
}

fn location(place: &Place, text: &str) -> Value {
    let mut location = json!({"message": message(text)});
    if let Some(physical) = physical(place) {
        location["physicalLocation"] = physical;
    }
    if let Some(function) = place.function {
        location["logicalLocations"] =
            json!([{"fullyQualifiedName": function, "kind": "function"}]);
    }
    location
}

fn physical(place: &Place) -> Option<Value> {
    if let Some(file) = place.file.filter(|file| !file.is_empty()) {
        let mut physical = json!({"artifactLocation": artifact(file)});
        // Compilers say line 0 of code that belongs to none; the format counts from 1.
        if let Some(line) = place.line.filter(|line| *line > 0) {
            let mut region = json!({"startLine": line});
            if let Some(column) = place.column.filter(|column| *column > 0) {
                region["startColumn"] = column.into();
            }
            if let Some(source) = place.source {
                region["snippet"] = json!({"text": source});
            }
            physical["region"] = region;
        }
        return Some(physical);
    }
    let (module, offset) = place.binary.filter(|(module, _)| !module.is_empty())?;
    let region = json!({"byteOffset": offset});
    Some(json!({"artifactLocation": artifact(module), "region": region}))
}

/// A URI: relative ones start at the root of the sources.
fn artifact(path: &str) -> Value {
    let encoded = uri_path(path.strip_prefix("./").unwrap_or(path));
    if path.starts_with('/') {
        json!({"uri": format!("file://{encoded}")})
    } else {
        json!({"uri": encoded, "uriBaseId": "%SRCROOT%"})
    }
}

/// A path in a URI. Bytes that are not UTF-8 are what they were.
fn uri_path(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let bytes = verdict_findings::bytes_of_text(path);
    let encoded = bytes.iter().map(|byte| match *byte {
        byte if plain(byte) => (byte as char).to_string(),
        byte => format!("%{byte:02X}"),
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        let uri = |path: &str| artifact(path)["uri"].as_str().unwrap().to_owned();
        assert_eq!(uri("./src/a b.c"), "src/a%20b.c");
        assert_eq!(uri("/usr/include/x:y.h"), "file:///usr/include/x%3Ay.h");
        assert_eq!(uri("caf\\xe9.c"), "caf%E9.c");
        assert_eq!(uri("a\nb\"<"), "a%0Ab%22%3C");
    }
}
