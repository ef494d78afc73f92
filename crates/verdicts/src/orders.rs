//! The two orders of a race told step by step: who accesses first, who after that, and what comes of it.

use std::collections::BTreeSet;
use std::path::Path;
use verdict_classify::{Class, Evidence, Primary, Shown, ShownOrder, Verdict};
use verdict_findings::{Access, AccessKind, Order, Race, Step, WhichOrder};

/// Both orders of the instance that shows the verdict; nothing where none was tried. `first` are the instructions of the race's
/// first access.
pub(crate) fn orders(
    race: &Race,
    first: &BTreeSet<u64>,
    verdict: &Verdict,
    primary: &Primary,
    ordered_by: Option<&str>,
) -> Vec<Order> {
    let (Some(shown), Some(class)) = (&verdict.shown, verdict.class) else {
        return Vec::new();
    };
    let sides = Sides::new(race, first, shown);
    let by_recorded = verdict.is_of_recorded(primary);
    let violation = |ended: &verdict_confirm::Ended| ended.detail.clone();
    let wrote = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        let line = text.lines().next().unwrap_or("nothing");
        format!("writes {line}")
    };
    let mut ends = [violation(&primary.ended), "comes to the same".to_owned()];
    let mut steps = sides.turned(shown.order);
    match class {
        Class::SpecViolated if by_recorded && verdict.memory.is_some() => {
            let recorded = verdict
                .consequence
                .as_ref()
                .map_or_else(String::new, violation);
            ends = [recorded, "there is none".to_owned()];
        }
        Class::SpecViolated if by_recorded => ends[1] = "does not end so".to_owned(),
        Class::SpecViolated => {
            if let Some(ended) = &verdict.consequence {
                ends[1] = violation(ended);
            }
        }
        Class::OutputDiffers => {
            if let Some(output) = &verdict.output {
                ends = [wrote(&output.primary), wrote(&output.alternate)];
            } else {
                ends[1] = "another exit code".to_owned();
            }
        }
        Class::SingleOrdering => {
            steps = vec![sides.held()];
            ends[1] = ordered_by
                .unwrap_or("the other thread does not come to its access")
                .to_owned();
        }
        Class::KWitnessHarmless => {}
    }
    let recording = |wanted: &dyn Fn(&Path) -> bool| {
        let mut evidence = verdict.evidence.iter();
        evidence.find(|evidence| wanted(&evidence.path))
    };
    let order = |order, steps, ends, shown: Option<&Evidence>| Order {
        order,
        steps,
        ends,
        evidence: shown.map(|shown| shown.path.display().to_string()),
        preemptions: shown.map(|shown| shown.preemptions),
    };
    let [recorded, other] = ends;
    let as_recorded = recording(&|path| path == primary.recording);
    let alternate = recording(&|path| path != primary.recording);
    vec![
        order(WhichOrder::Primary, sides.recorded(), recorded, as_recorded),
        order(WhichOrder::Alternate, steps, other, alternate),
    ]
}

/// The two accesses in the recorded order, with the threads of the instance.
struct Sides<'a> {
    first: (u32, &'a Access),
    second: (u32, &'a Access),
    variable: Option<&'a str>,
}

impl<'a> Sides<'a> {
    fn new(race: &'a Race, first: &BTreeSet<u64>, shown: &Shown) -> Self {
        let instance = &shown.instance;
        let [mut one, mut other] = race.accesses.each_ref();
        if !first.contains(&instance.first.pc) {
            std::mem::swap(&mut one, &mut other);
        }
        Sides {
            first: (instance.first.thread, one),
            second: (instance.second.thread, other),
            variable: race.variable.name.as_deref(),
        }
    }

    fn recorded(&self) -> Vec<Step> {
        vec![self.step(self.first), self.step(self.second)]
    }

    fn turned(&self, order: ShownOrder) -> Vec<Step> {
        let [first, second] = [self.first, self.second].map(|side| self.step(side));
        match order {
            ShownOrder::Turned => vec![second, first],
            ShownOrder::Kept => vec![first, second],
            // An update in place is a load and a store.
            ShownOrder::Between => {
                let part = |word: &str| Step {
                    text: format!("{word} {}", self.what(self.first.1)),
                    ..first.clone()
                };
                vec![part("loads"), second, part("stores")]
            }
        }
    }

    /// The first thread does not get on, so that the second may go before it.
    fn held(&self) -> Step {
        let (_, access) = self.first;
        let verb = match access.access {
            AccessKind::Read => "reading",
            AccessKind::Write => "writing",
        };
        Step {
            text: format!("is kept from {verb} {}", self.what(access)),
            ..self.step(self.first)
        }
    }

    fn step(&self, (thread, access): (u32, &Access)) -> Step {
        let verb = match access.access {
            AccessKind::Read => "reads",
            AccessKind::Write => "writes",
        };
        let line = access.line;
        let source = access
            .source
            .as_ref()
            .zip(line)
            .and_then(|(excerpt, line)| {
                let index = line.checked_sub(excerpt.first_line)?;
                let text = excerpt.lines.get(index as usize)?;
                Some(text.trim().to_owned())
            });
        Step {
            thread,
            text: format!("{verb} {}", self.what(access)),
            function: access.function.clone(),
            file: access.file.clone(),
            line,
            source,
            racing: true,
        }
    }

    fn what(&self, access: &Access) -> String {
        match (self.variable, access.size) {
            (Some(name), _) => name.to_owned(),
            (None, 1) => "1 byte".to_owned(),
            (None, 0) => "the memory".to_owned(),
            (None, size) => format!("{size} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(kind: AccessKind, line: u32) -> Access {
        Access {
            access: kind,
            size: 4,
            line: Some(line),
            ..Access::default()
        }
    }

    fn told(steps: &[Step]) -> Vec<(u32, &str, Option<u32>)> {
        steps
            .iter()
            .map(|step| (step.thread, step.text.as_str(), step.line))
            .collect()
    }

    #[test]
    fn every_order_is_told_as_it_was() {
        let [update, read] = [access(AccessKind::Write, 3), access(AccessKind::Read, 9)];
        let mut sides = Sides {
            first: (1, &update),
            second: (2, &read),
            variable: Some("sum"),
        };
        let (first, second) = ((1, "writes sum", Some(3)), (2, "reads sum", Some(9)));
        assert_eq!(told(&sides.recorded()), [first, second]);
        assert_eq!(told(&sides.turned(ShownOrder::Turned)), [second, first]);
        assert_eq!(told(&sides.turned(ShownOrder::Kept)), [first, second]);
        let between = sides.turned(ShownOrder::Between);
        let (load, store) = ((1, "loads sum", Some(3)), (1, "stores sum", Some(3)));
        assert_eq!(told(&between), [load, second, store]);
        sides.variable = None;
        let held = [sides.held()];
        assert_eq!(told(&held), [(1, "is kept from writing 4 bytes", Some(3))]);
    }
}
