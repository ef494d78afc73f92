//! The report on a program as one HTML file that needs nothing else: no network, no other file, and, to be read, no script.
//!
//! Everything is in the markup. The script filters, searches, copies and moves with the keyboard; without it (and on
//! paper) all races are there, one after the other.

mod difference;
mod markup;
mod overview;
mod race;
mod timeline;

use verdict_findings::ProgramFindings;

use crate::findings_text::ReportOptions;
use crate::ranking::worst_first;
use crate::words;
use markup::{Html, element, of_class, plain, void};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The only script that the page allows: should text ever get into the markup unescaped, browsers would still not run it. A
/// test compares it with the script.
const SCRIPT_HASH: &str = "sha256-PgYhE8GXrIZg1P5nmb+FPaeRtnDVVPbOcTwLaT43Abg=";

/// A whole page.
pub fn findings_html(findings: &ProgramFindings, options: ReportOptions) -> String {
    let title = format!("verdict: {}", words::program(findings));
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'"
    );
    let head = [
        void("meta", &[("charset", "utf-8")]),
        void(
            "meta",
            &[
                ("http-equiv", "Content-Security-Policy"),
                ("content", &policy),
            ],
        ),
        void(
            "meta",
            &[
                ("name", "viewport"),
                ("content", "width=device-width, initial-scale=1"),
            ],
        ),
        void(
            "meta",
            &[("name", "color-scheme"), ("content", "light dark")],
        ),
        plain("title", Html::text(&title)),
        plain("style", Html::own(STYLE)),
    ];
    let body = body(findings, options).and(plain("script", Html::own(SCRIPT)));
    let page = plain("head", head.into_iter().collect()).and(plain("body", body));
    let html = element("html", &[("lang", "en")], page);
    format!("<!DOCTYPE html>\n{}\n", html.into_string())
}

fn body(findings: &ProgramFindings, options: ReportOptions) -> Html {
    let races = worst_first(findings);
    let articles: Html = races
        .iter()
        .enumerate()
        .map(|(index, race)| race::article(index + 1, race, findings, options))
        .collect();
    let nothing_left = element(
        "p",
        &[("id", "nothing"), ("hidden", "")],
        Html::text("No race fits the filter."),
    );
    let main = [
        overview::table(&races, options),
        nothing_left,
        articles,
        overview::gone(options.since),
        overview::suppressed(findings),
        overview::not_covered(findings),
        overview::stages(findings),
        overview::keys(),
    ];
    overview::header(findings).and(of_class("main", "page", main.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// By the tools of the system, which know nothing of us.
    #[test]
    fn hash_is_that_of_the_script() {
        let mut shell = Command::new("sh")
            .args([
                "-c",
                "sha256sum | cut -c1-64 | perl -ne 'chomp; print pack(\"H*\", $_)' | base64",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        shell
            .stdin
            .take()
            .unwrap()
            .write_all(SCRIPT.as_bytes())
            .unwrap();
        let output = shell.wait_with_output().unwrap();
        let hash = String::from_utf8(output.stdout).unwrap();
        assert_eq!(SCRIPT_HASH, format!("sha256-{}", hash.trim()));
    }
}
