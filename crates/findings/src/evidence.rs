//! The recordings that a verdict names, wherever it names them.

use crate::{Verdict, WhichOrder};

impl Verdict {
    /// All of them, those that show the worst first, each once.
    #[must_use]
    pub fn recordings(&self) -> Vec<&str> {
        let of_order = |wanted: WhichOrder| {
            let orders = self
                .orders
                .iter()
                .filter(move |order| order.order == wanted);
            orders.filter_map(|order| order.evidence.as_deref())
        };
        let errors = self.confirmation.iter().flat_map(|found| &found.errors);
        let all = of_order(WhichOrder::Alternate)
            .chain(self.evidence.iter().map(String::as_str))
            .chain(errors.filter_map(|error| error.evidence.as_deref()))
            .chain(of_order(WhichOrder::Primary));
        let mut names = Vec::new();
        for name in all {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Gives each of them another name; without one it is no longer named.
    pub fn rename_recordings(&mut self, rename: &dyn Fn(&str) -> Option<String>) {
        self.evidence = self
            .evidence
            .iter()
            .filter_map(|name| rename(name))
            .collect();
        let orders = self.orders.iter_mut().map(|order| &mut order.evidence);
        let confirmations = self.confirmation.iter_mut();
        let errors = confirmations.flat_map(|found| &mut found.errors);
        for name in orders.chain(errors.map(|error| &mut error.evidence)) {
            *name = name.as_deref().and_then(rename);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Confirmation, ConsequenceKind, ObservedError, Order};

    fn verdict() -> Verdict {
        let order = |order, name: &str| Order {
            order,
            steps: Vec::new(),
            ends: "exit code 0".into(),
            evidence: Some(name.into()),
            preemptions: None,
        };
        let error = ObservedError {
            kind: ConsequenceKind::Crash,
            detail: String::new(),
            seed: 1,
            runs: 1,
            stack: Vec::new(),
            evidence: Some("error".into()),
        };
        Verdict {
            orders: vec![
                order(WhichOrder::Primary, "primary"),
                order(WhichOrder::Alternate, "alternate"),
            ],
            evidence: vec!["met".into(), "alternate".into()],
            confirmation: Some(Confirmation {
                errors: vec![error],
                ..Confirmation::default()
            }),
            ..Verdict::default()
        }
    }

    #[test]
    fn the_worst_comes_first() {
        let names = ["alternate", "met", "error", "primary"];
        assert_eq!(verdict().recordings(), names);
    }

    #[test]
    fn every_mention_is_renamed_or_gone() {
        let mut verdict = verdict();
        verdict.rename_recordings(&|name| (name != "met").then(|| format!("here/{name}")));
        let names = ["here/alternate", "here/error", "here/primary"];
        assert_eq!(verdict.recordings(), names);
    }
}
