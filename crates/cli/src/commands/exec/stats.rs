//! What a run did, for people and for programs.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use verdict_protocol::{PartTimes, Report, Stats};

use crate::{CliError, Context, Format};

/// Raised when a field changes its meaning or goes away.
const JSON_VERSION: u32 = 1;

pub(crate) fn render(report: &Report, format: Format) -> String {
    match format {
        Format::Text => text(&report.stats),
        Format::Json => format!("{:#}\n", json(&report.stats)),
    }
}

pub(crate) fn write(text: &str, path: &Path, context: &Context) -> Result<(), CliError> {
    let mut file = context.create_file(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.finish());
    written.map_err(|error| CliError::writing(path.display(), &error))
}

fn text(stats: &Stats) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<20} {value}");
    };
    line("instructions", grouped(stats.instructions));
    if stats.threads.len() > 1 {
        for (index, thread) in stats.threads.iter().enumerate() {
            line(&format!("  thread {index}"), grouped(thread.instructions));
        }
    }
    line("blocks translated", grouped(stats.blocks_translated));
    line("pages invalidated", grouped(stats.pages_invalidated));
    line(
        "switches",
        format!(
            "{} (hash {:016x})",
            grouped(stats.switches),
            stats.switches_hash
        ),
    );
    line("signals", grouped(stats.signals));
    line("system calls", grouped(stats.syscalls_total()));
    for (name, count) in &stats.syscalls {
        line(&format!("  {name}"), grouped(*count));
    }
    if let Some(accesses) = stats.accesses {
        let hash = accesses
            .hash
            .map_or_else(String::new, |hash| format!(" (hash {hash:016x})"));
        line(
            "accesses logged",
            format!("{}{hash}", grouped(accesses.logged)),
        );
    }
    if let Some(world) = &stats.world {
        line(
            "output",
            format!(
                "{} bytes (hash {:016x})",
                grouped(world.output_bytes),
                world.output_hash
            ),
        );
        line("held back", grouped(world.held_back));
        for attempt in &world.attempts {
            line("", attempt.clone());
        }
    }
    if let Some(times) = stats.times {
        for (name, nanoseconds) in parts(&times) {
            line(
                &format!("time, {name}"),
                format!("{:.3} ms", nanoseconds as f64 / 1e6),
            );
        }
    }
    text
}

fn parts(times: &PartTimes) -> [(&'static str, u64); 6] {
    [
        ("start", times.start_ns),
        ("guest", times.guest_ns),
        ("translation", times.translate_ns),
        ("system calls", times.kernel_ns),
        ("waiting", times.wait_ns),
        ("total", times.total_ns),
    ]
}

fn json(stats: &Stats) -> Value {
    // Hashes are text: numbers above 2^53 do not survive every reader of JSON.
    let hex = |hash: u64| format!("{hash:016x}");
    json!({
        "version": JSON_VERSION,
        "instructions": stats.instructions,
        "threads": stats.threads.iter().map(|t| json!({ "tid": t.tid, "instructions": t.instructions })).collect::<Vec<_>>(),
        "blocks_translated": stats.blocks_translated,
        "pages_invalidated": stats.pages_invalidated,
        "switches": stats.switches,
        "switches_hash": hex(stats.switches_hash),
        "signals": stats.signals,
        "syscalls": stats.syscalls,
        "accesses": stats.accesses.map(|a| json!({ "logged": a.logged, "hash": a.hash.map(hex) })),
        "watch_stops": stats.watch_stops,
        "world": stats.world.as_ref().map(|w| json!({
            "output_bytes": w.output_bytes,
            "output_hash": hex(w.output_hash),
            "held_back": w.held_back,
            "attempts": w.attempts,
        })),
        "times_ns": stats.times.map(|t| json!({
            "start": t.start_ns,
            "guest": t.guest_ns,
            "translate": t.translate_ns,
            "kernel": t.kernel_ns,
            "wait": t.wait_ns,
            "total": t.total_ns,
        })),
    })
}

/// 1234567 as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use verdict_protocol::{AccessStats, Outcome, ThreadStats};

    fn report() -> Report {
        let thread = |tid, instructions| ThreadStats { tid, instructions };
        Report {
            outcome: Outcome::Exited { code: 0 },
            stats: Stats {
                instructions: 1_234_567,
                threads: vec![thread(1, 1_234_000), thread(2, 567)],
                blocks_translated: 4321,
                pages_invalidated: 1,
                switches: 12,
                switches_hash: 0xdead,
                syscalls: [("write".to_owned(), 3), ("futex".to_owned(), 1000)].into(),
                signals: 0,
                watch_stops: 0,
                accesses: Some(AccessStats {
                    logged: 10,
                    hash: Some(u64::MAX),
                }),
                world: None,
                times: Some(PartTimes {
                    start_ns: 1_500_000,
                    total_ns: 2_000_000_000,
                    ..PartTimes::default()
                }),
            },
        }
    }

    #[test]
    fn for_people() {
        expect![[r#"
            instructions         1,234,567
              thread 0           1,234,000
              thread 1           567
            blocks translated    4,321
            pages invalidated    1
            switches             12 (hash 000000000000dead)
            signals              0
            system calls         1,003
              futex              1,000
              write              3
            accesses logged      10 (hash ffffffffffffffff)
            time, start          1.500 ms
            time, guest          0.000 ms
            time, translation    0.000 ms
            time, system calls   0.000 ms
            time, waiting        0.000 ms
            time, total          2000.000 ms
        "#]]
        .assert_eq(&render(&report(), Format::Text));
    }

    #[test]
    fn for_programs() {
        expect![[r#"
            {
              "accesses": {
                "hash": "ffffffffffffffff",
                "logged": 10
              },
              "blocks_translated": 4321,
              "instructions": 1234567,
              "pages_invalidated": 1,
              "signals": 0,
              "switches": 12,
              "switches_hash": "000000000000dead",
              "syscalls": {
                "futex": 1000,
                "write": 3
              },
              "threads": [
                {
                  "instructions": 1234000,
                  "tid": 1
                },
                {
                  "instructions": 567,
                  "tid": 2
                }
              ],
              "times_ns": {
                "guest": 0,
                "kernel": 0,
                "start": 1500000,
                "total": 2000000000,
                "translate": 0,
                "wait": 0
              },
              "version": 1,
              "watch_stops": 0,
              "world": null
            }
        "#]]
        .assert_eq(&render(&report(), Format::Json));
    }

    #[test]
    fn digits_are_grouped_in_threes() {
        let shown: Vec<String> = [0, 999, 1000, 12_345, u64::MAX].map(grouped).into();
        assert_eq!(
            shown,
            ["0", "999", "1,000", "12,345", "18,446,744,073,709,551,615"]
        );
    }
}
