//! `verdict confirm --target deadlock`: cycles of locks.

use verdict_findings::{DeadlockFindings, Frame, LockCycle, StuckThread};

/// For people.
pub(super) fn text(findings: &DeadlockFindings) -> String {
    let mut text = match findings.cycles.len() {
        0 => "no thread takes locks in another order than others do\n".to_owned(),
        1 => "1 cycle of locks\n".to_owned(),
        more => format!("{more} cycles of locks\n"),
    };
    for cycle in &findings.cycles {
        text.push('\n');
        text.push_str(&told(cycle));
    }
    text
}

fn told(cycle: &LockCycle) -> String {
    let mut lines = vec![if cycle.confirmed {
        format!("deadlock in {} of {} runs", cycle.deadlocks, cycle.runs)
    } else {
        format!(
            "not reproduced in {} runs; threads stood before all locks in {}",
            cycle.runs, cycle.hits
        )
    }];
    for step in &cycle.steps {
        lines.push(format!(
            "  thread {} took {} at {}, holding {} since {}",
            step.thread,
            step.wants,
            place(&step.at),
            step.holds,
            place(&step.held_since)
        ));
    }
    for thread in &cycle.stuck {
        lines.push(String::new());
        lines.push(waits(thread));
        lines.extend(
            thread
                .stack
                .iter()
                .map(|frame| format!("    {}", place(frame))),
        );
    }
    if let (Some(seed), Some(recording)) = (cycle.seed, &cycle.evidence) {
        lines.push(String::new());
        lines.push(format!("  seed {seed}; see it happen"));
        lines.push(format!("    verdict replay {recording}"));
    }
    lines.join("\n") + "\n"
}

fn waits(thread: &StuckThread) -> String {
    match thread.owner {
        Some(owner) => format!(
            "  thread {} waits for {}, which thread {owner} has",
            thread.thread, thread.waits_for
        ),
        None => format!("  thread {} waits for {}", thread.thread, thread.waits_for),
    }
}

fn place(frame: &Frame) -> String {
    let function = frame.function.as_deref().unwrap_or("?");
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{function}, {file}:{line}"),
        _ => format!("{function}, {}+{:#x}", frame.module, frame.offset),
    }
}
