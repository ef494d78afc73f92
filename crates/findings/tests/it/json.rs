use expect_test::expect;
use proptest::prelude::*;
use verdict_findings::*;

use crate::any::findings;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(document in findings()) {
        let json = document.to_json();
        prop_assert_eq!(json.matches('\n').count(), 1, "one line");
        let read = ProgramFindings::from_json(json.as_bytes()).unwrap();
        prop_assert_eq!(&read, &document);
        prop_assert_eq!(read.to_json(), json);
    }

    #[test]
    fn cut_documents_are_errors(document in findings(), part in 0.0..1.0) {
        let json = document.to_json();
        let length = (json.trim_end().len() as f64 * part) as usize;
        prop_assert!(ProgramFindings::from_json(&json.as_bytes()[..length]).is_err());
    }
}

/// What the schema promises at the least, and nothing else: the oldest document there can be.
const LEAST: &str = r#"{"schema":"verdict.races/1","program":{"path":"./a","args":["1"],"exit":0},"races":[
    {"id":"r1","accesses":[
        {"thread":1,"access":"write","size":4,"atomic":false,"function":"f","file":"a.c","line":3,"column":9,
         "module":"a","offset":4660,"stack":[]},
        {"thread":2,"access":"read","size":4,"atomic":false,"function":null,"file":null,"line":null,"column":null,
         "module":"a","offset":4666,"stack":[]}],
     "conflict":"flow","variable":{"name":"x","kind":"global"},"address":4096,"instances":2,"found_by":["hb"]}]}"#;

#[test]
fn fields_may_be_missing_or_new() {
    let old = ProgramFindings::from_json(LEAST.as_bytes()).unwrap();
    assert_eq!(old.races[0].verdict, None);
    assert_eq!(old.races[0].accesses[1].line, None);
    let newer = LEAST.replace(
        r#""conflict""#,
        r#""confirmed":null,"class":"output-differs","smell":["x",{"y":1}],"conflict""#,
    );
    let newer = ProgramFindings::from_json(newer.as_bytes()).unwrap();
    assert_eq!(newer.races[0].class(), Some(Class::OutputDiffers));
}

#[test]
fn fields_are_named_as_promised() {
    let mut document = ProgramFindings::from_json(LEAST.as_bytes()).unwrap();
    document.schema = Schema::Verdicts1;
    document.races[0].verdict = Some(Verdict {
        confirmed: Some(true),
        class: Some(Class::SpecViolated),
        consequence: Some(Consequence {
            kind: ConsequenceKind::Crash,
            detail: "thread 2 reads it".into(),
            thread: Some(2),
            stack: Vec::new(),
            cycle: Vec::new(),
            block: None,
        }),
        k: Some(3),
        states_differ: Some(true),
        replay: Some(Replay {
            outcome: ReplayOutcome::StateChange,
            instances: InstanceCounts {
                state_change: 2,
                ..Default::default()
            },
        }),
        label: Some(Label::DoubleCheck),
        evidence: vec!["evidence/r1-alternate.vrec".into()],
        ..Default::default()
    });
    expect![[r#"
        {"schema":"verdict.verdicts/1","program":{"path":"./a","args":["1"],"exit":0},"races":[{"id":"r1","accesses":[{"thread":1,"access":"write","size":4,"atomic":false,"function":"f","file":"a.c","line":3,"column":9,"module":"a","offset":4660,"stack":[],"locks":[]},{"thread":2,"access":"read","size":4,"atomic":false,"function":null,"file":null,"line":null,"column":null,"module":"a","offset":4666,"stack":[],"locks":[]}],"conflict":"flow","variable":{"name":"x","kind":"global"},"address":4096,"instances":2,"found_by":["hb"],"confirmed":true,"class":"spec-violated","consequence":{"kind":"crash","detail":"thread 2 reads it","thread":2,"stack":[]},"k":3,"states_differ":true,"replay":{"outcome":"state-change","instances":{"no-state-change":0,"state-change":2,"replay-failure":0}},"label":"double-check","evidence":["evidence/r1-alternate.vrec"]}],"threads":[],"coverage":[],"stages":[]}
    "#]]
    .assert_eq(&document.to_json());
}

#[test]
fn errors_say_what_is_wrong() {
    let message = |json: &str| {
        ProgramFindings::from_json(json.as_bytes())
            .unwrap_err()
            .to_string()
    };
    expect![[r#"schema `verdict.races/9` is not known; known are `verdict.races/1` and `verdict.verdicts/1`"#]]
        .assert_eq(&message(&LEAST.replace("races/1", "races/9")));
    expect!["not a list of races or verdicts: missing field `schema` at line 1 column 2"]
        .assert_eq(&message("{}"));
    let bogus = LEAST.replace(
        r#""conflict""#,
        r#""confirmed":true,"class":"bogus","conflict""#,
    );
    expect!["not a list of races or verdicts: unknown variant `bogus`, expected one of `spec-violated`, `output-differs`, `single-ordering`, `k-witness-harmless` at line 7 column 143"].assert_eq(&message(&bogus));
    expect!["not a list of races or verdicts: unknown variant `flood`, expected one of `flow`, `anti`, `output` at line 7 column 23"].assert_eq(&message(&LEAST.replace("flow", "flood")));
    let missing = LEAST.replace(r#""program""#, r#""programme""#);
    expect!["not a list of races or verdicts: missing field `program` at line 7 column 112"]
        .assert_eq(&message(&missing));
}
