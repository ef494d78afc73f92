//! How much a program may be told: the kernel's limits on arguments and environment.

use crate::LoadError;

/// Longest single string, its final zero byte included (MAX_ARG_STRLEN: 32 pages).
const STRING_MAX: usize = 32 * 4096;
/// What is allowed however small the stack is (ARG_MAX).
const TOTAL_LEAST: u64 = 128 * 1024;
/// What is allowed however large the stack is: three quarters of the default stack of 8 MiB.
const TOTAL_MOST: u64 = 6 * 1024 * 1024;
const POINTER: u64 = 8;

/// Refuses what `execve` would refuse with E2BIG: a string above 128 KiB, or strings and their pointers above a quarter
/// of the stack.
pub fn check_arguments(
    argv: &[Vec<u8>],
    env: &[Vec<u8>],
    execfn: &[u8],
    stack_limit: u64,
) -> Result<(), LoadError> {
    let mut total = execfn.len() as u64 + 1;
    for (index, string) in argv.iter().enumerate() {
        total += length(string).ok_or(LoadError::ArgumentTooLong {
            index,
            bytes: string.len(),
        })?;
    }
    for string in env {
        total += length(string).ok_or_else(|| LoadError::VariableTooLong {
            name: variable_name(string),
            bytes: string.len(),
        })?;
    }
    let limit = (stack_limit / 4).clamp(TOTAL_LEAST, TOTAL_MOST);
    total += POINTER * (argv.len().max(1) + env.len()) as u64;
    if total > limit {
        return Err(LoadError::ArgumentsTooLarge {
            bytes: total,
            limit,
        });
    }
    Ok(())
}

fn length(string: &[u8]) -> Option<u64> {
    let with_zero = string.len() + 1;
    (with_zero <= STRING_MAX).then_some(with_zero as u64)
}

fn variable_name(string: &[u8]) -> String {
    // A string without `=` is no name but all value, and too long to show.
    let name = string.split(|&b| b == b'=').next().unwrap_or_default();
    String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: u64 = 8 * 1024 * 1024;

    fn check(argv: &[Vec<u8>]) -> Result<(), LoadError> {
        check_arguments(argv, &[], b"/bin/true", STACK)
    }

    #[test]
    fn one_string_may_fill_32_pages() {
        assert!(check(&[vec![b'x'; 131_071]]).is_ok());
        let refusal = check(&[b"a".to_vec(), vec![b'x'; 131_072]]).unwrap_err();
        assert!(matches!(
            refusal,
            LoadError::ArgumentTooLong {
                index: 1,
                bytes: 131_072
            }
        ));
    }

    #[test]
    fn all_strings_may_fill_a_quarter_of_the_stack() {
        // execfn takes 10 bytes, each of these 100 000 + 1 + 8.
        let twenty = vec![vec![b'x'; 100_000]; 20];
        assert!(check(&twenty).is_ok());
        let rest = 2 * 1024 * 1024 - 10 - 20 * 100_009 - 9;
        let mut full = twenty.clone();
        full.push(vec![b'x'; rest]);
        assert!(check(&full).is_ok());
        full.last_mut().unwrap().push(b'x');
        assert!(matches!(
            check(&full).unwrap_err(),
            LoadError::ArgumentsTooLarge { bytes, limit } if bytes == limit + 1
        ));
    }

    #[test]
    fn a_megabyte_of_many_arguments_is_fine() {
        assert!(check(&vec![vec![b'x'; 1023]; 1024]).is_ok());
    }

    #[test]
    fn pointers_count() {
        assert!(check(&vec![Vec::new(); 250_000]).is_err());
    }

    #[test]
    fn a_long_variable_is_named() {
        let env = [[b"LONG=".as_slice(), &[b'x'; 200_000]].concat()];
        let refusal = check_arguments(&[], &env, b"p", STACK).unwrap_err();
        assert!(matches!(refusal, LoadError::VariableTooLong { name, .. } if name == "LONG"));
    }
}
