//! What may be another race's doing.
//!
//! A violation or another output is doubtful where either order of the accesses leads to it, or only a run whose schedule after
//! them was random. Where another race alone explains the same, it is that race's; this one is judged by the rest.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use verdict_findings::{
    Class, ConsequenceKind, CoverageNote, Frame, ProgramFindings, Race, Verdict, WhichOrder,
};

/// What is not certain yet. Races may be classified one at a time: what is found out about each is added up.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Doubts {
    /// By the race's id.
    races: BTreeMap<String, Doubt>,
    /// What goes wrong in the recorded execution.
    recorded: Option<String>,
}

/// What a race is if another one explains what it was seen to do.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
struct Doubt {
    class: Class,
    k: u32,
}

impl Doubts {
    pub(crate) fn new(recorded: Option<String>) -> Self {
        let races = BTreeMap::new();
        Doubts { races, recorded }
    }

    pub(crate) fn add(&mut self, id: &str, class: Class, k: u32) {
        self.races.insert(id.to_owned(), Doubt { class, k });
    }

    /// Adds what is doubtful of other races of the same program.
    pub fn extend(&mut self, other: Doubts) {
        self.races.extend(other.races);
        self.recorded = self.recorded.take().or(other.recorded);
    }

    /// Adds what is doubtful of races of another execution, whose end is not that of the recorded one.
    pub(crate) fn extend_with_races_of(&mut self, other: Doubts) {
        self.races.extend(other.races);
    }

    /// Takes back what another race explains, and says so if none explains how the recorded execution ends.
    pub fn explain(&self, findings: &mut ProgramFindings) {
        let is_certain = |race: &&Race| !self.races.contains_key(&race.id);
        let certain: Vec<Verdict> = findings
            .races
            .iter()
            .filter(is_certain)
            .filter_map(|race| race.verdict.clone())
            .collect();
        for race in &mut findings.races {
            if let (Some(doubt), Some(verdict)) = (self.races.get(&race.id), &mut race.verdict)
                && certain.iter().any(|other| has_same_effect(verdict, other))
            {
                take_back(verdict, doubt);
            }
        }
        let explains = |verdict: &Verdict| {
            let consequence = verdict.consequence.as_ref();
            consequence.map(|consequence| &consequence.detail) == self.recorded.as_ref()
        };
        if let Some(recorded) = &self.recorded
            && !certain.iter().any(explains)
        {
            findings.coverage.push(CoverageNote {
                stage: "classify".into(),
                what: format!(
                    "the recorded execution ends with: {recorded}; no race that was tried explains that"
                ),
                help: None,
            });
        }
    }
}

/// True if two races break the program in the same way and place, or change its output alike.
fn has_same_effect(one: &Verdict, other: &Verdict) -> bool {
    one.class == other.class
        && match one.class {
            Some(Class::SpecViolated) => violation(one) == violation(other),
            Some(Class::OutputDiffers) => one.output_difference == other.output_difference,
            _ => false,
        }
}

/// What goes wrong; of a crash also where.
fn violation(verdict: &Verdict) -> Option<(ConsequenceKind, &str, Option<&Frame>)> {
    let consequence = verdict.consequence.as_ref()?;
    let is_crash = consequence.kind == ConsequenceKind::Crash;
    let place = consequence.stack.first().filter(|_| is_crash);
    Some((consequence.kind, &consequence.detail, place))
}

fn take_back(verdict: &mut Verdict, doubt: &Doubt) {
    verdict.class = Some(doubt.class);
    verdict.consequence = None;
    if doubt.class != Class::OutputDiffers {
        verdict.output_difference = None;
    }
    for order in &mut verdict.orders {
        if order.order == WhichOrder::Alternate {
            "comes to the same, but for what another race does".clone_into(&mut order.ends);
        }
    }
    verdict.k = (doubt.class == Class::KWitnessHarmless).then_some(doubt.k);
    verdict.why = Some(match doubt.class {
        Class::OutputDiffers => "the program's output depends on the order".into(),
        Class::SingleOrdering => {
            "the other order could not be had: whoever should come first waits for the other".into()
        }
        _ => format!(
            "{} runs with the other order came to the same output and the same end; what others came to, another race explains",
            doubt.k
        ),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_findings::{Access, Conflict, Consequence, Program, Schema, Variable};

    fn crash(function: &str) -> Verdict {
        let frame = Frame {
            function: Some(function.into()),
            ..Frame::default()
        };
        Verdict {
            class: Some(Class::SpecViolated),
            consequence: Some(Consequence {
                kind: ConsequenceKind::Crash,
                detail: "segmentation fault".into(),
                thread: None,
                stack: vec![frame],
                cycle: Vec::new(),
                block: None,
            }),
            ..Verdict::default()
        }
    }

    fn race(id: &str, verdict: Verdict) -> Race {
        Race {
            id: id.into(),
            accesses: <[Access; 2]>::default(),
            conflict: Conflict::Flow,
            variable: Variable::default(),
            address: 0,
            instances: 1,
            found_by: Vec::new(),
            why_not_ordered: None,
            cluster: None,
            suppressed: None,
            verdict: Some(verdict),
        }
    }

    fn findings(verdicts: [(&str, Verdict); 2]) -> ProgramFindings {
        let mut findings = ProgramFindings::new(Schema::Verdicts1, Program::default());
        findings.races = verdicts
            .into_iter()
            .map(|(id, verdict)| race(id, verdict))
            .collect();
        findings
    }

    fn class(findings: &ProgramFindings, race: usize) -> Option<Class> {
        findings.races[race].verdict.as_ref()?.class
    }

    #[test]
    fn a_doubtful_crash_is_that_of_the_race_that_is_certain_to_crash_there() {
        let mut doubts = Doubts::default();
        doubts.add("a", Class::KWitnessHarmless, 3);
        let mut same = findings([("a", crash("f")), ("b", crash("f"))]);
        doubts.explain(&mut same);
        assert_eq!(class(&same, 0), Some(Class::KWitnessHarmless));
        assert_eq!(same.races[0].verdict.as_ref().unwrap().consequence, None);
        assert_eq!(same.races[0].verdict.as_ref().unwrap().k, Some(3));
        assert_eq!(class(&same, 1), Some(Class::SpecViolated));
        let mut elsewhere = findings([("a", crash("g")), ("b", crash("f"))]);
        doubts.explain(&mut elsewhere);
        assert_eq!(class(&elsewhere, 0), Some(Class::SpecViolated));
        let mut both = findings([("a", crash("f")), ("b", crash("f"))]);
        doubts.add("b", Class::KWitnessHarmless, 1);
        doubts.explain(&mut both);
        assert_eq!(
            class(&both, 0),
            Some(Class::SpecViolated),
            "nothing explains it"
        );
    }

    #[test]
    fn an_end_that_no_race_explains_is_told_once() {
        let mut doubts = Doubts::new(Some("segmentation fault".into()));
        doubts.extend(Doubts::new(Some("segmentation fault".into())));
        let mut unexplained = findings([("a", Verdict::default()), ("b", Verdict::default())]);
        doubts.explain(&mut unexplained);
        assert_eq!(unexplained.coverage.len(), 1);
        let mut explained = findings([("a", crash("f")), ("b", Verdict::default())]);
        doubts.explain(&mut explained);
        assert_eq!(explained.coverage, []);
    }
}
