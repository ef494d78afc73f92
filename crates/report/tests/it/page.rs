//! The page in a browser: clicked through, typed at, made small, printed.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use verdict_history::{Change, Comparison, KnownRace};
use verdict_report::{ReportOptions, findings_html};

use crate::browser::Browser;
use crate::fixtures::{all_called, hostile_names, none, one_of_each};

fn page(findings: &verdict_findings::ProgramFindings) -> String {
    let options = ReportOptions {
        folder: "verdict-out",
        since: None,
    };
    findings_html(findings, options)
}

/// The numbers of the races that are shown.
const SHOWN: &str = "Array.from(document.querySelectorAll('article')).filter(a => a.offsetParent).map(a => Number(a.dataset.race))";

/// What sticks out of the window, or of the box it is in.
const OVERFLOWING: &str = "Array.from(document.querySelectorAll('body *')).filter(e => e.offsetParent && e.className !== 'tip' && \
     (e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline')).map(e => e.outerHTML.slice(0, 200))";

/// Pairs of steps that cover each other.
const OVERLAPPING: &str = "(() => { const s = Array.from(document.querySelectorAll('.step')).map(e => e.getBoundingClientRect()); \
     return s.flatMap((a, i) => s.slice(i + 1).filter(b => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)).length; })()";

#[test]
fn page_can_be_used() {
    let mut browser = Browser::start();
    browser.resize(1280, 900);
    browser.show(&page(&one_of_each()));
    assert_eq!(
        browser.value("document.documentElement.dataset.ready"),
        "yes"
    );
    assert_eq!(
        browser.value("document.title"),
        "verdict: ./pipeline --workers 2 'in put.txt'"
    );
    assert_eq!(browser.value(SHOWN), json!([1, 2, 3, 4, 5]));

    // Filter by class, by mouse and by keyboard.
    browser.click(".chip.spec-violated");
    assert_eq!(browser.value(SHOWN), json!([2, 3, 4, 5]));
    browser.press("2");
    assert_eq!(browser.value(SHOWN), json!([3, 4, 5]));
    browser.press("Escape");
    assert_eq!(browser.value(SHOWN), json!([1, 2, 3, 4, 5]));

    // Search.
    browser.press("/");
    for key in ["t", "a", "b", "l", "e", ".", "c"] {
        browser.press(key);
    }
    assert_eq!(
        browser.value("document.getElementById('search').value"),
        "table.c"
    );
    assert_eq!(browser.value(SHOWN), json!([4]));
    browser.press("x");
    assert_eq!(browser.value(SHOWN), json!([]));
    assert_eq!(
        browser.value("document.getElementById('nothing').hidden"),
        false
    );
    browser.press("Escape");

    // Move.
    let focused = "document.activeElement.dataset.race";
    for (key, race) in [("j", "1"), ("j", "2"), ("k", "1"), ("k", "1")] {
        browser.press(key);
        assert_eq!(browser.value(focused), race);
    }
    browser.click("#overview a[href='#race-3']");
    assert_eq!(browser.value("location.hash"), "#race-3");

    // Source lines appear under the pointer.
    let tip = "getComputedStyle(document.querySelector('#race-1 .step .tip')).display";
    assert_eq!(browser.value(tip), "none");
    browser.point_at("#race-1 .step");
    assert_eq!(browser.value(tip), "block");
    assert_eq!(
        browser.value("document.querySelector('#race-1 .step .tip').textContent"),
        "consume\npthread_mutex_lock(&queue->mutex);"
    );

    // Stacks open.
    browser.click("#race-1 summary");
    assert_eq!(
        browser.value("document.querySelector('#race-1 details').open"),
        true
    );

    // Commands are copied, or at least selected.
    browser.click("#race-2 .copy");
    assert_eq!(
        browser.value("getSelection().toString()"),
        "verdict replay verdict-out/evidence/c0ffee000002-primary.vrec"
    );

    // Light and dark.
    let paper = "getComputedStyle(document.body).backgroundColor";
    let before = browser.value(paper);
    browser.press("t");
    assert_ne!(browser.value(paper), before);
    browser.click("#theme");
    assert_eq!(browser.value(paper), before);

    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn page_fits_screens_and_paper() {
    let mut browser = Browser::start();
    browser.show(&page(&one_of_each()));
    for width in [1600, 1024, 640, 360] {
        browser.resize(width, 800);
        assert_eq!(browser.value(OVERFLOWING), json!([]), "{width} wide");
        assert_eq!(browser.value(OVERLAPPING), 0, "{width} wide");
    }
    browser.resize(794, 1123);
    browser.medium("print");
    assert_eq!(
        browser.value("document.querySelector('.controls').offsetParent"),
        json!(null)
    );
    assert_eq!(browser.value(SHOWN), json!([1, 2, 3, 4, 5]));
    assert_eq!(browser.value(OVERFLOWING), json!([]));
    browser.medium("screen");
    // To be looked at: `PICTURE=/tmp/page.png cargo test -p verdict-report page_fits`
    if let Some(path) = std::env::var_os("PICTURE") {
        browser.resize(1280, 900);
        browser.picture(Path::new(&path));
    }
    browser.show(&page(&none()));
    assert_eq!(
        browser.value("document.querySelector('h1').textContent"),
        "no races in ./pipeline --workers 2 'in put.txt'"
    );
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn hostile_names_break_nothing() {
    let mut browser = Browser::start();
    browser.resize(1024, 800);
    for hostile in hostile_names() {
        let findings = all_called(&hostile);
        let since = Comparison {
            changes: BTreeMap::from([(
                "c0ffee000001".into(),
                Change::Worse {
                    before: hostile.clone(),
                },
            )]),
            gone: vec![KnownRace {
                id: hostile.clone(),
                headline: hostile.clone(),
            }],
        };
        let options = ReportOptions {
            folder: &hostile,
            since: Some(&since),
        };
        browser.show(&findings_html(&findings, options));
        let shown: String = hostile.chars().take(40).collect();
        assert_eq!(
            browser.value("document.documentElement.dataset.ready"),
            "yes",
            "{shown}"
        );
        assert_ne!(browser.value("document.title"), "owned");
        assert_eq!(browser.value("document.scripts.length"), 1, "{shown}");
        assert_eq!(browser.value("document.images.length"), 0, "{shown}");
        assert_eq!(browser.value(SHOWN), json!([1, 2, 3, 4, 5]), "{shown}");
        assert_eq!(browser.value(OVERFLOWING), json!([]), "{shown}");
        assert_eq!(browser.value(OVERLAPPING), 0, "{shown}");
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}
