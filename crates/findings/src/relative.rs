//! Source files named as one would name them from a folder.

use serde_json::Value;

use crate::ProgramFindings;

impl ProgramFindings {
    /// The same, with source files under `folder` named from there. Reports are read where the sources are: there a short
    /// name says more, and tools that show races beside the lines want such names.
    #[must_use]
    pub fn with_files_from(&self, folder: &str) -> Self {
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        let mut document = serde_json::to_value(self).expect("these types are always valid JSON");
        shorten(&mut document, &prefix);
        serde_json::from_value(document).expect("only texts have changed")
    }
}

/// Every field that names a source file is called `file`; going through all of them forgets none.
fn shorten(value: &mut Value, prefix: &str) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(file) if name == "file" => {
                        if let Some(inside) =
                            file.strip_prefix(prefix).filter(|rest| !rest.is_empty())
                        {
                            *file = inside.to_owned();
                        }
                    }
                    other => shorten(other, prefix),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| shorten(value, prefix)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frame, Program, Schema, Thread};

    #[test]
    fn only_what_is_inside_is_named_from_there() {
        let frame = |file: &str| Frame {
            file: Some(file.into()),
            ..Frame::default()
        };
        let files = |names: [&str; 4]| {
            let mut findings = ProgramFindings::new(Schema::Races1, Program::default());
            findings.program.path = "/home/me/queue".into();
            findings.threads.push(Thread {
                created_at: names.map(frame).to_vec(),
                ..Thread::default()
            });
            findings
        };
        let whole = files(["/home/me/src/a.c", "/home/mean/b.c", "c.c", "/home/me/"]);
        let short = files(["src/a.c", "/home/mean/b.c", "c.c", "/home/me/"]);
        assert_eq!(whole.with_files_from("/home/me"), short);
        assert_eq!(whole.with_files_from("/home/me/"), short);
    }
}
