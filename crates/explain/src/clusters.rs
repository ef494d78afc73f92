//! Races that are one mistake: `count++` in two threads is a load and a store on either side, hence three races.
//!
//! A cluster has the same variable (but for elements), and the same functions on both sides, with the same callers
//! where these are known.

use std::collections::HashMap;

use verdict_findings::{Access, Race};

/// Gives races that belong together the id of the first of them.
pub(crate) fn mark(races: &mut [Race]) {
    let mut first: HashMap<Key, (usize, String)> = HashMap::new();
    for index in 0..races.len() {
        let key = Key::of(&races[index]);
        match first.get(&key) {
            None => {
                first.insert(key, (index, races[index].id.clone()));
            }
            Some((leader, id)) => {
                races[index].cluster = Some(id.clone());
                races[*leader].cluster = Some(id.clone());
            }
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    /// The variable with its fields, or where the memory is.
    what: String,
    sides: [Vec<String>; 2],
}

impl Key {
    fn of(race: &Race) -> Self {
        let variable = &race.variable;
        let what = match (&variable.name, variable.offset) {
            (Some(name), _) => name.split('[').next().unwrap_or(name).to_owned(),
            (None, Some(offset)) => format!("{:?} {offset} of {:?}", variable.kind, variable.size),
            (None, None) => format!("{:#x}", race.address),
        };
        let mut sides = [functions(&race.accesses[0]), functions(&race.accesses[1])];
        sides.sort();
        Self { what, sides }
    }
}

/// The functions of a stack; where there is none, that of the access, or its site.
fn functions(access: &Access) -> Vec<String> {
    let known: Vec<String> = access
        .stack
        .iter()
        .filter_map(|frame| frame.function.clone())
        .collect();
    if known.is_empty() {
        vec![format!("{}+{:#x}", access.module, access.offset)]
    } else {
        known
    }
}
