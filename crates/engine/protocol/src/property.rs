//! What the user wants to hold: expressions over global variables, and functions of the program that say so themselves.
//!
//! An expression travels as steps of a stack machine over exact integers, with every variable resolved to its bytes.

use serde::{Deserialize, Serialize};

/// Something that shall hold wherever it is looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Property {
    /// As the user knows it: the expression, or the function's name.
    pub text: String,
    /// How to find out.
    pub check: Check,
}

/// How to find out whether a property holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Check {
    /// By computing.
    Expression(Vec<PropertyStep>),
    /// By calling the function that begins here, without arguments: zero means that it does not.
    Function(u64),
}

/// One step of the computation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PropertyStep {
    /// Pushes a number.
    Constant(i64),
    /// Pushes a variable's value.
    Load {
        /// First byte.
        address: u64,
        /// 1, 2, 4 or 8.
        len: u8,
        /// Its first bit is a sign.
        signed: bool,
    },
    /// Replaces the top.
    Unary(Unary),
    /// Replaces the top two.
    Binary(Binary),
}

/// Operators of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Unary {
    Not,
    Negate,
    Complement,
}

/// Operators of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Binary {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// Whether an expression is true, that is, not zero; `None` where it has no value: a variable that cannot be read, a division
/// by zero.
#[must_use]
pub fn is_true(steps: &[PropertyStep], read: &dyn Fn(u64, &mut [u8]) -> bool) -> Option<bool> {
    let mut stack: Vec<i128> = Vec::new();
    for step in steps {
        let value = match *step {
            PropertyStep::Constant(number) => i128::from(number),
            PropertyStep::Load {
                address,
                len,
                signed,
            } => load(address, len, signed, read)?,
            PropertyStep::Unary(operator) => {
                let operand = stack.pop()?;
                match operator {
                    Unary::Not => i128::from(operand == 0),
                    Unary::Negate => operand.checked_neg()?,
                    Unary::Complement => !operand,
                }
            }
            PropertyStep::Binary(operator) => {
                let (right, left) = (stack.pop()?, stack.pop()?);
                binary(operator, left, right)?
            }
        };
        stack.push(value);
    }
    stack.pop().map(|value| value != 0)
}

fn load(
    address: u64,
    len: u8,
    signed: bool,
    read: &dyn Fn(u64, &mut [u8]) -> bool,
) -> Option<i128> {
    let mut bytes = [0; 8];
    let len = usize::from(len).min(8);
    if !read(address, &mut bytes[..len]) {
        return None;
    }
    let value = u64::from_le_bytes(bytes);
    let bits = 8 * len as u32;
    let negative = signed && bits > 0 && value >> (bits - 1) & 1 == 1;
    Some(i128::from(value) - if negative { 1 << bits } else { 0 })
}

fn binary(operator: Binary, left: i128, right: i128) -> Option<i128> {
    let truth = |value: bool| Some(i128::from(value));
    match operator {
        Binary::Or => truth(left != 0 || right != 0),
        Binary::And => truth(left != 0 && right != 0),
        Binary::BitOr => Some(left | right),
        Binary::BitXor => Some(left ^ right),
        Binary::BitAnd => Some(left & right),
        Binary::Equal => truth(left == right),
        Binary::NotEqual => truth(left != right),
        Binary::Less => truth(left < right),
        Binary::LessOrEqual => truth(left <= right),
        Binary::Greater => truth(left > right),
        Binary::GreaterOrEqual => truth(left >= right),
        Binary::Add => left.checked_add(right),
        Binary::Subtract => left.checked_sub(right),
        Binary::Multiply => left.checked_mul(right),
        Binary::Divide => left.checked_div(right),
        Binary::Remainder => left.checked_rem(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_sign_and_no_value_is_neither_true_nor_false() {
        let minus_one = |_: u64, bytes: &mut [u8]| {
            bytes.fill(0xff);
            true
        };
        let less = |signed| {
            [
                PropertyStep::Load {
                    address: 8,
                    len: 4,
                    signed,
                },
                PropertyStep::Constant(0),
                PropertyStep::Binary(Binary::Less),
            ]
        };
        assert_eq!(is_true(&less(true), &minus_one), Some(true));
        assert_eq!(is_true(&less(false), &minus_one), Some(false));
        assert_eq!(is_true(&less(true), &|_, _| false), None);
        let by_zero = [
            PropertyStep::Constant(1),
            PropertyStep::Constant(0),
            PropertyStep::Binary(Binary::Divide),
        ];
        assert_eq!(is_true(&by_zero, &minus_one), None);
    }
}
