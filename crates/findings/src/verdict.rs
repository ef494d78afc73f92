//! What a race is worth: everything that confirmation and classification add to it.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

use crate::{
    Class, Confirmation, Consequence, Label, Order, OutputDifference, Replay, StateDifference,
};

/// The verdict on a race. What a stage has not asked or not found is none or empty.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Verdict {
    /// Whether both accesses were brought face to face in a real run; none if that was not tried. Always in the JSON: it
    /// tells a race with a verdict from one without.
    pub confirmed: Option<bool>,
    /// How that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// What the race can do.
    #[serde(default)]
    pub class: Option<Class>,
    /// How it violates the specification, where it does.
    #[serde(default)]
    pub consequence: Option<Consequence>,
    /// In how many runs of the other order nothing was seen, for a race that is harmless as far as is known.
    #[serde(default)]
    pub k: Option<u32>,
    /// Whether the orders left different states, seen from outside or not.
    #[serde(default)]
    pub states_differ: Option<bool>,
    /// The outcome of replaying both orders.
    #[serde(default)]
    pub replay: Option<Replay>,
    /// What the orders leave with different values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state_differences: Vec<StateDifference>,
    /// The first difference in what the program wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_difference: Option<OutputDifference>,
    /// What makes the other order impossible, for a single ordering: the spin variable, the lock, the join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered_by: Option<String>,
    /// The kind of benign race.
    #[serde(default)]
    pub label: Option<Label>,
    /// Why this class, in a sentence or two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The recorded order and the other one, told step by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<Order>,
    /// Recordings that show it, relative to the result folder.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// Reads what is left of a race's fields as its verdict, if they hold one. (`flatten` of an `Option` by itself would take a
/// malformed verdict for none.)
pub(crate) fn if_present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Verdict>, D::Error> {
    let fields = Map::deserialize(deserializer)?;
    if !fields.contains_key("confirmed") {
        return Ok(None);
    }
    let verdict = Verdict::deserialize(Value::Object(fields)).map_err(de::Error::custom)?;
    Ok(Some(verdict))
}
