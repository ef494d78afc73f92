use std::collections::BTreeMap;

use expect_test::{expect, expect_file};
use verdict_findings::{ConsequenceKind, MisusedBlock, ProgramFindings, Suppression};
use verdict_history::{Change, Comparison, KnownRace};
use verdict_report::{ReportOptions, Tone, findings_text};

use crate::fixtures::{all_called, hostile_names, none, one_of_each};

const PLAIN: &dyn Fn(Tone, &str) -> String = &|_, text| text.to_owned();

fn options() -> ReportOptions<'static> {
    ReportOptions {
        folder: "verdict-out",
        since: None,
    }
}

#[test]
fn one_race_of_each_class() {
    let text = findings_text(&one_of_each(), options(), PLAIN);
    expect_file!["one_of_each.txt"].assert_eq(&text);
}

#[test]
fn nothing_to_report() {
    expect![[r#"
        no races in ./pipeline --workers 2 'in put.txt'
    "#]]
    .assert_eq(&findings_text(&none(), options(), PLAIN));
}

#[test]
fn what_could_race_is_told_apart_and_shortly() {
    let pair = one_of_each().races.swap_remove(0);
    let mut findings = none();
    findings.predictions = vec![pair; 16];
    // One more instruction of the same lines, one that is not to be told, one of no known line, and another function.
    findings.predictions[1].id = "again".to_owned();
    findings.predictions[2].suppressed = Some(Suppression::default());
    findings.predictions[3].accesses[0].file = None;
    findings.predictions[4].accesses[1].function = None;
    for (line, pair) in findings.predictions.iter_mut().enumerate().skip(5) {
        pair.accesses[1].line = Some(line as u32);
    }
    expect![[r#"
        no races in ./pipeline --workers 2 'in put.txt'

        could race in another run: 14 pairs of lines that no lock keeps apart
          pipeline.c:52 (consume) writes, pipeline.c:71 (queue_free) writes
          ./pipeline+0x11a8 (consume) writes, pipeline.c:71 (queue_free) writes
          pipeline.c:52 (consume) writes, pipeline.c:71 writes
          pipeline.c:52 (consume) writes, pipeline.c:5 (queue_free) writes
          pipeline.c:52 (consume) writes, pipeline.c:6 (queue_free) writes
          pipeline.c:52 (consume) writes, pipeline.c:7 (queue_free) writes
          pipeline.c:52 (consume) writes, pipeline.c:8 (queue_free) writes
          pipeline.c:52 (consume) writes, pipeline.c:9 (queue_free) writes
          pipeline.c:52 (consume) writes, pipeline.c:10 (queue_free) writes
          pipeline.c:52 (consume) writes, pipeline.c:11 (queue_free) writes
          and 4 more
          `verdict confirm -- ./pipeline --workers 2 'in put.txt'` steers runs to
            them: those that meet are races
    "#]]
    .assert_eq(&findings_text(&findings, options(), PLAIN));
}

#[test]
fn a_memory_error_comes_with_the_stacks_of_its_block() {
    let mut findings = one_of_each();
    let race = &mut findings.races[0];
    let allocated_at = race.variable.allocated_at.clone();
    let freed_at = race.accesses[1].stack.clone();
    let verdict = race.verdict.as_mut().unwrap();
    let consequence = verdict.consequence.as_mut().unwrap();
    consequence.kind = ConsequenceKind::MemoryError;
    consequence.block = Some(MisusedBlock {
        size: 96,
        allocated_at,
        freed_at,
    });
    let text = findings_text(&findings, options(), PLAIN);
    let from = text.find("stack of thread 2 at").unwrap();
    let to = text.find("  as recorded").unwrap();
    expect![[r#"
        stack of thread 2 at the memory error
               pthread_mutex_lock at /lib/x86_64-linux-gnu/libc.so.6+0x923d8
               consume at pipeline.c:52:5

          the block was freed
               free at /lib/x86_64-linux-gnu/libc.so.6+0x9c400
               release at pipeline.c:66:3 (inlined)
               queue_free at pipeline.c:71:3
               main at pipeline.c:151:3

          the block was allocated
               queue_new at pipeline.c:31:25
               main at pipeline.c:138:25

    "#]]
    .assert_eq(&text[from..to]);
}

#[test]
fn what_has_changed_is_said() {
    let mut findings = one_of_each();
    findings.races.truncate(2);
    findings.coverage.clear();
    for race in &mut findings.races {
        for access in &mut race.accesses {
            (access.source, access.stack) = (None, Vec::new());
        }
        race.variable.allocated_at.clear();
        race.verdict.as_mut().unwrap().orders.clear();
    }
    let [worse, new] = ["c0ffee000001", "c0ffee000002"].map(str::to_owned);
    let before = "k-witness-harmless".to_owned();
    let since = Comparison {
        changes: BTreeMap::from([(worse, Change::Worse { before }), (new, Change::New)]),
        gone: vec![KnownRace {
            id: "c0ffee000099".into(),
            headline: "crash: the log was closed twice".into(),
        }],
    };
    let options = ReportOptions {
        folder: ".",
        since: Some(&since),
    };
    expect![[r#"
        2 races in ./pipeline --workers 2 'in put.txt'

        spec-violated  crash: thread 1 frees `queue->mutex` while thread 2 locks it,
          in consume at pipeline.c:52:5
          race c0ffee000001; once; found by hb, hybrid; confirmed: together in 97 of 100
          runs; replay-failure in 1 of 1 instance; states differ
          WORSE than before: it was k-witness-harmless until now

          on queue->mutex, pthread_mutex_t, 16 bytes into a heap block of 96 bytes

          atomic write of 4 bytes by thread 2 (consumer) in consume, pipeline.c:52:5

          write of 40 bytes by thread 1 (pipeline) in queue_free, pipeline.c:71:3,
            holding registry_lock

          thread 2 (consumer) was created by thread 1 (pipeline) in start_consumers at
            pipeline.c:88:9

          not ordered: main frees the queue without joining consumer; nothing orders
            the end of the loop and the free

          stack of thread 2 at the crash
               pthread_mutex_lock at /lib/x86_64-linux-gnu/libc.so.6+0x923d8
               consume at pipeline.c:52:5

          went wrong after it
            crash in 41 of 100 runs, seed 17: SIGSEGV in pthread_mutex_lock

          see it happen
            verdict replay evidence/c0ffee000001-primary.vrec
            verdict replay evidence/c0ffee000001-alternate.vrec

        output-differs  writes `done: 41 items` or `done: 40 items`
          race c0ffee000002; 1,204 times; found by hb; confirmed: together in 100 of 100
          runs; state-change in 1,200 of 1,204 instances; states differ
          new: not seen in earlier runs

          on stats.pushed, int, a global variable of 4 bytes, declared at pipeline.c:12

          read of 4 bytes by thread 3 (producer) in produce, pipeline.c:100:8

          write of 4 bytes by thread 1 (pipeline) in main, pipeline.c:147:3, holding
            queue->mutex

          thread 3 (producer) was created by thread 1 (pipeline) in main at
            pipeline.c:143:3

          not ordered: produce holds no lock that main holds

          left behind: as recorded, then in the other order
               stats.pushed: 41, 40
               eax: 0x29, 0x28

          standard output after 6 bytes
               - done: 41 items
               + done: 40 items
               written in main at pipeline.c:155:3

          see it happen
            verdict replay evidence/c0ffee000002-primary.vrec
            verdict replay evidence/c0ffee000002-alternate.vrec

        class           races
        spec-violated       1  an order of the accesses breaks the program
        output-differs      1  what the program writes depends on the order

        gone since earlier runs
          c0ffee000099: crash: the log was closed twice
    "#]]
    .assert_eq(&findings_text(&findings, options, PLAIN));
}

#[test]
fn hostile_names_stay_on_their_lines() {
    for hostile in hostile_names() {
        let text = findings_text(&all_called(&hostile), options(), PLAIN);
        let mut shown = 0;
        for line in text.lines() {
            let is_command = line.trim_start().starts_with("verdict replay ");
            let columns = line.chars().count();
            assert!(columns <= 80 || is_command, "{columns} columns: {line}");
            shown += if is_command { 0 } else { line.len() };
            assert!(!line.starts_with("::"), "obeyed by a CI log: {line}");
        }
        let obeyed =
            |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{2028}\u{2029}".contains(c));
        assert!(!text.contains(obeyed), "{text:?}");
        assert!(shown < 60_000, "{shown} bytes");
    }
}

#[test]
fn colour_changes_nothing_else() {
    let paint = |_: Tone, text: &str| format!("\u{1b}{text}\u{1b}");
    for findings in [one_of_each(), none()] {
        let coloured = findings_text(&findings, options(), &paint);
        let plain = findings_text(&findings, options(), PLAIN);
        assert_eq!(coloured.replace('\u{1b}', ""), plain);
    }
}

/// The second race again, as a compiler makes it that unrolls a loop.
fn unrolled(times: usize) -> ProgramFindings {
    let mut findings = one_of_each();
    findings.coverage.clear();
    let race = findings.races.swap_remove(1);
    findings.races = vec![race; times];
    for (nth, race) in findings.races.iter_mut().enumerate() {
        race.id = format!("c0ffee{nth:06}");
    }
    findings
}

#[test]
fn races_of_the_same_lines_that_do_the_same_are_told_together() {
    let mut findings = unrolled(12);
    let class = findings.races[0].class();
    assert!(class.is_some());
    findings.races[2].accesses[0].line = Some(1);
    findings.races[3].verdict.as_mut().unwrap().class = None;
    let text = findings_text(&findings, options(), PLAIN);
    let told: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.contains("of these lines"))
        .take_while(|line| !line.is_empty())
        .map(|line| &line[2..])
        .collect();
    expect![[r#"
        the same with 9 more races of these lines: c0ffee000001, c0ffee000004,
          c0ffee000005, c0ffee000006, c0ffee000007, c0ffee000008, c0ffee000009,
          c0ffee000010, ..."#]]
    .assert_eq(&told.join("\n"));
    assert_eq!(
        text.matches("\n  race ").count(),
        3,
        "those that are unlike"
    );
}

#[test]
fn a_race_that_is_worse_than_before_is_told_for_itself() {
    let findings = unrolled(3);
    let before = "k-witness-harmless".to_owned();
    let changes = [(findings.races[1].id.clone(), Change::Worse { before })];
    let since = Comparison {
        changes: changes.into_iter().collect(),
        ..Comparison::default()
    };
    let options = ReportOptions {
        since: Some(&since),
        ..options()
    };
    let text = findings_text(&findings, options, PLAIN);
    assert!(text.contains("WORSE than before"), "{text}");
    assert_eq!(text.matches("\n  race ").count(), 2);
}

#[test]
fn races_of_one_mistake_are_told_together() {
    let mut findings = one_of_each();
    findings.coverage.clear();
    findings.races.truncate(3);
    let leader = findings.races[1].id.clone();
    for race in &mut findings.races {
        race.verdict = None;
        race.cluster = Some(leader.clone());
    }
    let text = findings_text(&findings, options(), PLAIN);
    let told: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "  the same mistake")
        .take_while(|line| !line.is_empty())
        // `expect!` takes away what all lines are indented by.
        .map(|line| &line[2..])
        .collect();
    expect![[r#"
          the same mistake
            write by thread 2 at pipeline.c:52:5, write by thread 1 at pipeline.c:71:3
              race c0ffee000001; once
            write by thread 3 at pipeline.c:110:17, read by thread 2 at
              pipeline.c:44:10
              race c0ffee000003; 7 times"#]]
    .assert_eq(&told.join("\n"));
    assert_eq!(text.matches("unclassified  thread").count(), 1);
}
