//! Findings as they are shown to people here.

use verdict_findings::{ProgramFindings, text_of_bytes};

/// With source files named from the current folder, as a compiler would.
pub(crate) fn from_here(findings: &ProgramFindings) -> ProgramFindings {
    match std::env::current_dir() {
        Ok(folder) => {
            findings.with_files_from(&text_of_bytes(folder.as_os_str().as_encoded_bytes()))
        }
        Err(_) => findings.clone(),
    }
}
