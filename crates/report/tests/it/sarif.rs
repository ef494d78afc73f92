use expect_test::expect_file;
use serde_json::Value;
use verdict_findings::ProgramFindings;
use verdict_report::{ReportOptions, findings_sarif};

use crate::fixtures::{all_called, hostile_names, none, one_of_each};

fn sarif(findings: &ProgramFindings) -> Value {
    let options = ReportOptions {
        folder: "verdict-out",
        since: None,
    };
    let text = findings_sarif(findings, options);
    assert_eq!(text.matches('\n').count(), 1, "one line");
    // The types of this crate are made from the official schema: fields that it does not have, that are missing or of
    // another type do not get through.
    let typed: serde_sarif::sarif::Sarif = serde_json::from_str(&text).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        serde_json::to_value(&typed).unwrap(),
        value,
        "fields that the schema does not have"
    );
    check_rules(&value);
    value
}

/// What the schema and the standard ask beyond types.
fn check_rules(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for result in run["results"].as_array().unwrap() {
        let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert_eq!(result["locations"].as_array().unwrap().len(), 1);
        for flow in result["codeFlows"].as_array().unwrap() {
            let threads = flow["threadFlows"].as_array().unwrap();
            assert_eq!(threads.len(), 2, "one for each thread");
            let locations = threads
                .iter()
                .flat_map(|thread| thread["locations"].as_array().unwrap());
            let mut order: Vec<u64> = locations
                .map(|location| location["executionOrder"].as_u64().unwrap())
                .collect();
            order.sort();
            assert_eq!(
                order,
                (1..=order.len() as u64).collect::<Vec<_>>(),
                "each step once"
            );
        }
    }
    walk(log, &mut |name, value| match name {
        "uri" => {
            let uri = value.as_str().unwrap();
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/%:".contains(c);
            assert!(!uri.is_empty() && uri.chars().all(plain), "{uri}");
        }
        "startLine" | "startColumn" => assert!(value.as_u64().unwrap() >= 1),
        "byteOffset" => assert!(value.is_u64()),
        "text" => assert!(value.is_string()),
        _ => {}
    });
}

fn walk(value: &Value, visit: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| walk(value, visit)),
        Value::Object(fields) => {
            for (name, value) in fields {
                visit(name, value);
                walk(value, visit);
            }
        }
        _ => {}
    }
}

#[test]
fn one_race_of_each_class() {
    let log = sarif(&one_of_each());
    expect_file!["one_of_each.sarif"]
        .assert_eq(&(serde_json::to_string_pretty(&log).unwrap() + "\n"));
}

#[test]
fn nothing_to_report() {
    assert_eq!(sarif(&none())["runs"][0]["results"], serde_json::json!([]));
}

#[test]
fn fingerprints_do_not_depend_on_places() {
    let moved = {
        let mut findings = one_of_each();
        for access in findings
            .races
            .iter_mut()
            .flat_map(|race| &mut race.accesses)
        {
            access.line = access.line.map(|line| line + 100);
            access.offset += 4096;
        }
        findings
    };
    let fingerprints = |findings: &ProgramFindings| {
        let log = sarif(findings);
        let results = log["runs"][0]["results"].as_array().unwrap().clone();
        results
            .into_iter()
            .map(|mut result| result["partialFingerprints"].take())
            .collect::<Vec<_>>()
    };
    assert_eq!(fingerprints(&moved), fingerprints(&one_of_each()));
}

#[test]
fn hostile_names_break_no_rule() {
    for hostile in hostile_names() {
        let log = sarif(&all_called(&hostile));
        assert_eq!(log["runs"][0]["results"].as_array().unwrap().len(), 6);
    }
}
