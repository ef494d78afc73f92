//! Who did what in which order, as SARIF's code flows; and how they came there, as its stacks.

use serde_json::{Value, json};
use verdict_findings::{Frame, Order, ProgramFindings, Race, Step};

use super::location::{access_location, frame_location, message, step_location};
use crate::lanes::lanes;
use crate::words;

/// One code flow for each order that was told. Where none was: the two accesses as they came.
pub(super) fn code_flows(race: &Race, findings: &ProgramFindings) -> Vec<Value> {
    let orders = race
        .verdict
        .as_ref()
        .map_or(&[][..], |verdict| &verdict.orders);
    let lanes = lanes(race, orders);
    let told = orders.iter().filter(|order| !order.steps.is_empty());
    let flows: Vec<Value> = told
        .map(|order| order_flow(order, &lanes, findings))
        .collect();
    if flows.is_empty() {
        return vec![accesses_flow(race, findings)];
    }
    flows
}

fn order_flow(order: &Order, lanes: &[u32], findings: &ProgramFindings) -> Value {
    let mut text = words::order(order.order).to_owned();
    if !order.ends.is_empty() {
        text.push_str(&format!(": {}", words::sentence(&order.ends)));
    }
    let threads = lanes.iter().filter_map(|thread| {
        let numbered = order.steps.iter().enumerate();
        let own = numbered.filter(|(_, step)| step.thread == *thread);
        let locations: Vec<Value> = own.map(|(at, step)| step_in_flow(at, step)).collect();
        (!locations.is_empty()).then(|| thread_flow(*thread, &locations, findings))
    });
    json!({"message": message(&text), "threadFlows": threads.collect::<Vec<_>>()})
}

fn step_in_flow(at: usize, step: &Step) -> Value {
    json!({
        "location": step_location(step),
        "executionOrder": at + 1,
        "importance": if step.racing { "essential" } else { "important" },
    })
}

fn accesses_flow(race: &Race, findings: &ProgramFindings) -> Value {
    let threads = race.accesses.iter().enumerate().map(|(at, access)| {
        let location = json!({
            "location": access_location(access, findings),
            "executionOrder": at + 1,
            "importance": "essential",
        });
        thread_flow(access.thread, &[location], findings)
    });
    json!({"message": message("the two accesses"), "threadFlows": threads.collect::<Vec<_>>()})
}

fn thread_flow(thread: u32, locations: &[Value], findings: &ProgramFindings) -> Value {
    json!({
        "id": words::thread_number(thread),
        "message": message(&words::thread(findings, thread)),
        "locations": locations,
    })
}

/// The stacks of both accesses, and that of the consequence.
pub(super) fn stacks(race: &Race, findings: &ProgramFindings) -> Vec<Value> {
    let accesses = race.accesses.iter().map(|access| {
        let whose = format!(
            "{} by {}",
            words::access(access),
            words::thread(findings, access.thread)
        );
        (whose, &access.stack)
    });
    let verdict = race.verdict.as_ref();
    let consequence = verdict
        .and_then(|verdict| verdict.consequence.as_ref())
        .map(|consequence| {
            (
                words::consequence_words(consequence.kind).to_owned(),
                &consequence.stack,
            )
        });
    let all = accesses
        .chain(consequence)
        .filter(|(_, stack)| !stack.is_empty());
    all.map(|(whose, frames)| stack(&whose, frames)).collect()
}

fn stack(whose: &str, frames: &[Frame]) -> Value {
    let frames: Vec<Value> = frames
        .iter()
        .map(|frame| json!({"location": frame_location(frame)}))
        .collect();
    json!({"message": message(whose), "frames": frames})
}
