use expect_test::expect;
use verdict_report::{ReportOptions, findings_github};

use crate::fixtures::{all_called, hostile_names, none, one_of_each};

fn options() -> ReportOptions<'static> {
    ReportOptions {
        folder: "verdict-out",
        since: None,
    }
}

#[test]
fn one_line_a_race() {
    expect![[r#"
        ::error title=data race%3A spec-violated,file=pipeline.c,line=52,col=5::crash: thread 1 frees `queue->mutex` while thread 2 locks it, in consume at pipeline.c:52:5%0Aon `queue->mutex`: atomic write of 4 bytes by thread 2 (consumer) at pipeline.c:52:5; write of 40 bytes by thread 1 (pipeline) at pipeline.c:71:3%0Averdict replay verdict-out/evidence/c0ffee000001-primary.vrec%0Averdict replay verdict-out/evidence/c0ffee000001-alternate.vrec
        ::warning title=data race%3A output-differs,file=pipeline.c,line=100,col=8::writes `done: 41 items` or `done: 40 items`%0Aon `stats.pushed`: read of 4 bytes by thread 3 (producer) at pipeline.c:100:8; write of 4 bytes by thread 1 (pipeline) at pipeline.c:147:3%0Averdict replay verdict-out/evidence/c0ffee000002-primary.vrec%0Averdict replay verdict-out/evidence/c0ffee000002-alternate.vrec
        ::notice title=data race%3A single-ordering,file=pipeline.c,line=110,col=17::only one order: wait_until_ready spins on `ready` until produce has set it%0Aon `ready`: write of 1 byte by thread 3 (producer) at pipeline.c:110:17; read of 1 byte by thread 2 (consumer) at pipeline.c:44:10
        ::notice title=data race%3A k-witness-harmless,file=table.c,line=21,col=7::no difference seen in 4 runs: double check, repeated under the lock%0Aon `table`: read of 8 bytes by thread 2 (consumer) at table.c:21:7; write of 8 bytes by thread 3 (producer) at table.c:25:13
        ::notice title=data race%3A not-reproduced::predicted on the stack frame of consume, not seen in 100 runs%0Aon the stack frame of consume: write of 8 bytes by thread 2 (consumer) at /opt/plugin.so+0x1234; write of 8 bytes by thread 3 (producer) at /opt/plugin.so+0x1266
    "#]].assert_eq(&findings_github(&one_of_each(), options()));
    assert_eq!(findings_github(&none(), options()), "");
}

#[test]
fn hostile_names_make_no_commands() {
    for hostile in hostile_names() {
        let text = findings_github(&all_called(&hostile), options());
        assert_eq!(text.lines().count(), 5, "{text}");
        for line in text.lines() {
            let (command, properties) = line[2..].split_once(' ').unwrap();
            assert!(["error", "warning", "notice"].contains(&command), "{line}");
            let (properties, message) = properties.split_once("::").unwrap();
            for property in properties.split(',') {
                let (name, _) = property.split_once('=').unwrap();
                assert!(["title", "file", "line", "col"].contains(&name), "{line}");
            }
            assert!(!message.contains(char::is_control), "{line}");
        }
    }
}
