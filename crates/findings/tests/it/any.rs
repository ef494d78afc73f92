//! Documents of any content.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use verdict_findings::*;

/// Text that breaks what is not careful.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_.>-]{0,8}",
        any::<String>(),
        Just("<script>alert(1)</script>".to_owned()),
        Just("a\nb\u{1b}[31m\0".to_owned()),
    ]
}

fn frame() -> impl Strategy<Value = Frame> {
    let place = (of(text()), of(text()), of(any::<u32>()), of(any::<u32>()));
    (place, text(), any::<u64>(), any::<bool>()).prop_map(|(place, module, offset, inlined)| {
        let (function, file, line, column) = place;
        Frame {
            function,
            file,
            line,
            column,
            module,
            offset,
            inlined,
        }
    })
}

fn stack() -> impl Strategy<Value = Vec<Frame>> {
    vec(frame(), 0..3)
}

fn lock() -> impl Strategy<Value = Lock> {
    let mode = prop_oneof![Just(LockMode::Exclusive), Just(LockMode::Shared)];
    (text(), of(any::<u64>()), mode, stack()).prop_map(|(name, address, mode, taken_at)| Lock {
        name,
        address,
        mode,
        taken_at,
    })
}

fn access() -> impl Strategy<Value = Access> {
    let kind = prop_oneof![Just(AccessKind::Read), Just(AccessKind::Write)];
    let excerpt = (any::<u32>(), vec(text(), 0..3))
        .prop_map(|(first_line, lines)| Excerpt { first_line, lines });
    let what = (any::<u32>(), kind, any::<u64>(), any::<bool>());
    let rest = (of(any::<u64>()), stack(), vec(lock(), 0..2), of(excerpt));
    (what, frame(), rest).prop_map(|(what, frame, rest)| Access {
        thread: what.0,
        access: what.1,
        size: what.2,
        atomic: what.3,
        function: frame.function,
        file: frame.file,
        line: frame.line,
        column: frame.column,
        module: frame.module,
        offset: frame.offset,
        retired: rest.0,
        stack: rest.1,
        locks: rest.2,
        source: rest.3,
    })
}

fn variable() -> impl Strategy<Value = Variable> {
    let kind = prop::sample::select(vec![
        VariableKind::Global,
        VariableKind::Heap,
        VariableKind::Stack,
        VariableKind::ThreadLocal,
        VariableKind::Unknown,
    ]);
    let names = (of(text()), of(text()), of(text()), of(text()), of(text()));
    let numbers = (
        of(any::<u32>()),
        of(any::<u64>()),
        of(any::<u64>()),
        of(any::<u32>()),
    );
    (kind, names, numbers, stack()).prop_map(|(kind, names, numbers, allocated_at)| Variable {
        name: names.0,
        kind,
        type_name: names.1,
        file: names.2,
        line: numbers.0,
        size: numbers.1,
        offset: numbers.2,
        module: names.3,
        thread: numbers.3,
        function: names.4,
        allocated_at,
    })
}

fn consequence_kind() -> impl Strategy<Value = ConsequenceKind> {
    prop::sample::select(vec![
        ConsequenceKind::Crash,
        ConsequenceKind::Abort,
        ConsequenceKind::Assertion,
        ConsequenceKind::Exception,
        ConsequenceKind::Deadlock,
        ConsequenceKind::Hang,
        ConsequenceKind::InfiniteLoop,
        ConsequenceKind::MemoryError,
        ConsequenceKind::Property,
        ConsequenceKind::ExitCode,
    ])
}

fn consequence() -> impl Strategy<Value = Consequence> {
    (
        consequence_kind(),
        text(),
        of(any::<u32>()),
        stack(),
        vec(text(), 0..3),
        of(misused_block()),
    )
        .prop_map(|(kind, detail, thread, stack, cycle, block)| Consequence {
            kind,
            detail,
            thread,
            stack,
            cycle,
            block,
        })
}

fn misused_block() -> impl Strategy<Value = MisusedBlock> {
    (any::<u64>(), stack(), stack()).prop_map(|(size, allocated_at, freed_at)| MisusedBlock {
        size,
        allocated_at,
        freed_at,
    })
}

fn confirmation() -> impl Strategy<Value = Confirmation> {
    let error = (
        consequence_kind(),
        text(),
        any::<u64>(),
        any::<u64>(),
        stack(),
        of(text()),
    )
        .prop_map(
            |(kind, detail, seed, runs, stack, evidence)| ObservedError {
                kind,
                detail,
                seed,
                runs,
                stack,
                evidence,
            },
        );
    let numbers = (any::<u64>(), any::<u64>(), of(any::<u64>()));
    (numbers, of(text()), vec(stack(), 0..3), vec(error, 0..3)).prop_map(
        |((runs, hits, seed), refuted, stacks, errors)| Confirmation {
            runs,
            hits,
            seed,
            refuted,
            stacks,
            errors,
        },
    )
}

fn replay() -> impl Strategy<Value = Replay> {
    let outcome = prop::sample::select(vec![
        ReplayOutcome::NoStateChange,
        ReplayOutcome::StateChange,
        ReplayOutcome::ReplayFailure,
    ]);
    (outcome, any::<[u64; 4]>()).prop_map(|(outcome, counts)| Replay {
        outcome,
        instances: InstanceCounts {
            no_state_change: counts[0],
            state_change: counts[1],
            replay_failure: counts[2],
            not_tried: counts[3],
        },
    })
}

fn output_difference() -> impl Strategy<Value = OutputDifference> {
    let piece = || (text(), stack()).prop_map(|(text, stack)| OutputPiece { text, stack });
    (text(), any::<u64>(), any::<bool>(), piece(), piece()).prop_map(
        |(stream, position, only_interleaving, primary, alternate)| OutputDifference {
            stream,
            position,
            only_interleaving,
            primary,
            alternate,
        },
    )
}

fn order() -> impl Strategy<Value = Order> {
    let step = (any::<u32>(), text(), frame(), of(text()), any::<bool>()).prop_map(
        |(thread, text, frame, source, racing)| Step {
            thread,
            text,
            function: frame.function,
            file: frame.file,
            line: frame.line,
            source,
            racing,
        },
    );
    let which = prop_oneof![Just(WhichOrder::Primary), Just(WhichOrder::Alternate)];
    (which, vec(step, 0..3), text(), of(text()), of(any::<u64>())).prop_map(
        |(order, steps, ends, evidence, preemptions)| Order {
            order,
            steps,
            ends,
            evidence,
            preemptions,
        },
    )
}

fn verdict() -> impl Strategy<Value = Verdict> {
    let labels = prop::sample::select(vec![
        Label::UserConstructedSynchronisation,
        Label::DoubleCheck,
        Label::BothValuesValid,
        Label::RedundantWrite,
        Label::DisjointBits,
        Label::Approximate,
    ]);
    let state = (text(), text(), text()).prop_map(|(variable, old, new)| StateDifference {
        variable,
        old,
        new,
    });
    let confirmed = (of(any::<bool>()), of(confirmation()));
    let class = (
        of(prop::sample::select(Class::ALL.to_vec())),
        of(consequence()),
        of(labels),
    );
    let facts = (
        of(any::<u32>()),
        of(any::<bool>()),
        of(replay()),
        of(text()),
        of(text()),
    );
    let shown = (
        vec(state, 0..3),
        of(output_difference()),
        vec(order(), 0..3),
        vec(text(), 0..3),
    );
    (confirmed, class, facts, shown).prop_map(|(confirmed, class, facts, shown)| Verdict {
        confirmed: confirmed.0,
        confirmation: confirmed.1,
        class: class.0,
        consequence: class.1,
        k: facts.0,
        states_differ: facts.1,
        replay: facts.2,
        state_differences: shown.0,
        output_difference: shown.1,
        ordered_by: facts.3,
        label: class.2,
        why: facts.4,
        orders: shown.2,
        evidence: shown.3,
    })
}

fn race() -> impl Strategy<Value = Race> {
    let suppression =
        (text(), text(), of(text()), any::<bool>()).prop_map(|(by, reason, until, expired)| {
            Suppression {
                by,
                reason,
                until,
                expired,
            }
        });
    let found = (
        any::<u64>(),
        any::<u64>(),
        vec(text(), 0..3),
        of(text()),
        of(text()),
    );
    let rest = (of(suppression), of(verdict()));
    (text(), access(), access(), variable(), found, rest).prop_map(
        |(id, first, second, variable, found, rest)| Race {
            variable,
            address: found.0,
            instances: found.1,
            found_by: found.2,
            why_not_ordered: found.3,
            cluster: found.4,
            suppressed: rest.0,
            verdict: rest.1,
            ..Race::new(id, [first, second])
        },
    )
}

fn program() -> impl Strategy<Value = Program> {
    let ending = (of(any::<i32>()), of(any::<i32>()), of(text()));
    (text(), vec(text(), 0..3), ending, of(text())).prop_map(|(path, args, ending, build_id)| {
        let (exit, signal, ending) = ending;
        Program {
            path,
            args,
            exit,
            signal,
            ending,
            build_id,
        }
    })
}

/// A document.
pub fn findings() -> impl Strategy<Value = ProgramFindings> {
    let schema = prop_oneof![Just(Schema::Races1), Just(Schema::Verdicts1)];
    let thread = (any::<u32>(), of(text()), of(any::<u32>()), stack()).prop_map(
        |(id, name, parent, created_at)| Thread {
            id,
            name,
            parent,
            created_at,
        },
    );
    let note = (text(), text(), of(text())).prop_map(|(stage, what, help)| CoverageNote {
        stage,
        what,
        help,
    });
    let stage = (
        text(),
        prop::collection::btree_map(text(), any::<u64>(), 0..3),
    )
        .prop_map(|(stage, counts)| StageStatistics { stage, counts });
    let lists = (
        vec(race(), 0..3),
        vec(race(), 0..2),
        vec(thread, 0..3),
        vec(note, 0..3),
        vec(stage, 0..3),
    );
    (schema, program(), lists).prop_map(|(schema, program, lists)| ProgramFindings {
        schema,
        program,
        races: lists.0,
        predictions: lists.1,
        threads: lists.2,
        coverage: lists.3,
        stages: lists.4,
    })
}
