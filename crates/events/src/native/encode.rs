//! Events into the body of an event frame.
//!
//! ```text
//! body     = shapes, operands, columns, extras
//! shapes   = count, (thread, code, detail, size, site - site of the shape before)*
//! operands = count, (operand - operand before)*            in rising order
//! columns  = four planes of one byte an event:
//!            low and high byte of the number of its shape,
//!            low and high byte of the step from the operand that the shape had last
//! extras   = the values, sizes and lengths of the events that have one
//! ```
//!
//! A step is the difference of the operands' numbers modulo 2^16, with its sign in the lowest bit. A loop
//! over an array steps by the same small number each time, and the threads of a frame come free with the
//! shapes, so the planes hold long repeats and many zeros for the compressor.

use hashbrown::{HashMap, hash_map::Entry};

use super::frame::FRAME_EVENTS_MAX;
use super::shape::{OperandKind, Shape, split};
use super::varint;
use crate::{Event, ThreadId};

/// What a frame holds, as far as its header, its index entry and its names need it.
#[derive(Default)]
pub(crate) struct Contents {
    /// Threads that occur, in rising order.
    pub(crate) threads: Vec<ThreadId>,
    /// Distinct operands, each with what it is used as.
    pub(crate) operands: Vec<(u64, OperandKind)>,
    /// The largest site number.
    pub(crate) site_max: u32,
}

/// Encodes frames, keeping its tables from one to the next.
#[derive(Default)]
pub(crate) struct Encoder {
    shapes: HashMap<[u64; 2], u16>,
    operands: HashMap<u64, u16>,
    shape_list: Vec<Shape>,
    operand_list: Vec<u64>,
    /// For each event: number of its shape, and of its operand in order of appearance.
    rows: Vec<(u16, u16)>,
    extras: Vec<u8>,
}

impl Encoder {
    /// Appends the body for `events` to `body`. At most [`FRAME_EVENTS_MAX`] events.
    pub(crate) fn encode(&mut self, events: &[Event], body: &mut Vec<u8>) -> Contents {
        assert!(events.len() <= FRAME_EVENTS_MAX);
        self.gather(events);
        self.put_shapes(body);
        let ranks = self.put_operands(body);
        self.put_columns(&ranks, body);
        body.extend_from_slice(&self.extras);
        self.contents()
    }

    fn gather(&mut self, events: &[Event]) {
        self.shapes.clear();
        self.operands.clear();
        self.shape_list.clear();
        self.operand_list.clear();
        self.rows.clear();
        self.extras.clear();
        for event in events {
            let parts = split(event);
            let shape = number(
                &mut self.shapes,
                &mut self.shape_list,
                parts.shape.key(),
                parts.shape,
            );
            let operand = parts.operand;
            let operand = number(&mut self.operands, &mut self.operand_list, operand, operand);
            self.rows.push((shape, operand));
            if let Some(extra) = parts.extra {
                varint::put(&mut self.extras, extra);
            }
        }
    }

    fn put_shapes(&self, body: &mut Vec<u8>) {
        varint::put(body, self.shape_list.len() as u64);
        let mut site_before = 0;
        for shape in &self.shape_list {
            varint::put(body, shape.thread.0.into());
            body.extend([shape.code, shape.detail]);
            varint::put(body, shape.size.into());
            varint::put_signed(body, i64::from(shape.site.0) - site_before);
            site_before = shape.site.0.into();
        }
    }

    /// Returns the rank of each operand: its number in order of value, by its number in order of appearance.
    fn put_operands(&self, body: &mut Vec<u8>) -> Vec<u16> {
        let mut order: Vec<u16> = (0..=u16::MAX).take(self.operand_list.len()).collect();
        order.sort_unstable_by_key(|&number| self.operand_list[usize::from(number)]);
        varint::put(body, order.len() as u64);
        let mut ranks = vec![0; order.len()];
        let mut before = 0;
        for (rank, &number) in order.iter().enumerate() {
            let operand = self.operand_list[usize::from(number)];
            varint::put(body, operand - before);
            before = operand;
            ranks[usize::from(number)] = rank as u16;
        }
        ranks
    }

    fn put_columns(&self, ranks: &[u16], body: &mut Vec<u8>) {
        let mut last = vec![0u16; self.shape_list.len()];
        let steps: Vec<u16> = self
            .rows
            .iter()
            .map(|&(shape, operand)| {
                let rank = ranks[usize::from(operand)];
                let last = &mut last[usize::from(shape)];
                let step = rank.wrapping_sub(*last);
                *last = rank;
                sign_last(step)
            })
            .collect();
        body.extend(self.rows.iter().map(|&(shape, _)| shape as u8));
        body.extend(self.rows.iter().map(|&(shape, _)| (shape >> 8) as u8));
        body.extend(steps.iter().map(|&step| step as u8));
        body.extend(steps.iter().map(|&step| (step >> 8) as u8));
    }

    fn contents(&self) -> Contents {
        let mut threads: Vec<ThreadId> = self.shape_list.iter().map(|s| s.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let kinds: Vec<OperandKind> = self.shape_list.iter().map(|s| s.operand_kind()).collect();
        let mut operands: Vec<(u64, OperandKind)> = Vec::new();
        // A bit for each kind that an operand has been used as.
        let mut seen = vec![0u8; self.operand_list.len()];
        for &(shape, operand) in &self.rows {
            let kind = kinds[usize::from(shape)];
            let (seen, bit) = (&mut seen[usize::from(operand)], 1 << kind as u8);
            if kind != OperandKind::None && *seen & bit == 0 {
                *seen |= bit;
                operands.push((self.operand_list[usize::from(operand)], kind));
            }
        }
        let sites = self.shape_list.iter().map(|shape| shape.site.0);
        Contents {
            threads,
            operands,
            site_max: sites.max().unwrap_or(0),
        }
    }
}

/// The number of `key`, in order of first appearance.
fn number<K: Eq + std::hash::Hash, T>(
    numbers: &mut HashMap<K, u16>,
    list: &mut Vec<T>,
    key: K,
    value: T,
) -> u16 {
    match numbers.entry(key) {
        Entry::Occupied(entry) => *entry.get(),
        Entry::Vacant(entry) => {
            let number = u16::try_from(list.len()).expect("at most 65536 events in a frame");
            list.push(value);
            *entry.insert(number)
        }
    }
}

/// 0, -1, 1, -2, 2 ... become 0, 1, 2, 3, 4 ...
fn sign_last(step: u16) -> u16 {
    step << 1 ^ ((step as i16) >> 15) as u16
}

/// The inverse of [`sign_last`].
#[inline(always)]
pub(crate) fn sign_first(step: u16) -> u16 {
    step >> 1 ^ (step & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_comes_back() {
        for step in 0..=u16::MAX {
            assert_eq!(sign_first(sign_last(step)), step);
        }
        assert_eq!(sign_last(u16::MAX), 1, "-1 is short");
    }
}
