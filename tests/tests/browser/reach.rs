//! Accessibility of the page: axe, keyboard, narrow screens, and a layout that stands still.

use std::path::Path;

use acceptance::local_stack::python_environment;
use serde_json::{Value, json};

use crate::browser::Tab;
use crate::follow::long_job;
use crate::stack::{data, folder, job_over, job_page, on_the_stack, page};

/// Notes layout shifts from now on: the browser's own measure of those that nobody caused by pressing something.
pub const WATCH_SHIFTS: &str = "window.shifts = [], new PerformanceObserver(list => window.shifts.push(...list.getEntries().map(one => \
    ({value: one.value, what: one.sources.map(source => source.node?.className ?? '').join()}))))\
    .observe({type: 'layout-shift', buffered: false}), null";

pub const SHIFTS: &str = "window.shifts.filter(one => one.value > 0.001)";

/// The script of axe-core, from the package in `tests/axe`.
pub async fn axe() -> String {
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("axe/requirements.txt");
    let environment = folder().join("axe");
    python_environment(&environment, &requirements).await;
    let libraries = std::fs::read_dir(environment.join("lib")).expect("libraries");
    let mut scripts = libraries
        .map(|python| python.expect("a folder").path().join("site-packages/axe_core_python/axe.min.js"))
        .filter(|script| script.is_file());
    std::fs::read_to_string(scripts.next().expect("axe")).expect("text")
}

/// Asserts that axe finds nothing in the state that the page is in, in both schemes and on a narrow screen.
pub async fn finds_nothing(tab: &Tab, axe: &str, state: &str) {
    let run = "axe.run(document).then(found => found.violations.map(one => \
               `${one.id}: ${one.nodes.map(node => node.html.slice(0, 150) + ' ' + node.failureSummary).join('; ')}`))";
    for (width, dark) in [(1280, false), (1280, true), (390, false)] {
        tab.resize(width, 860).await;
        tab.prefer_dark(dark).await;
        let found: Vec<String> = tab.with_script(axe, run).await;
        assert!(found.is_empty(), "{state}, {width} pixels, dark: {dark}: {found:#?}");
        let overflow: bool = tab.value("document.documentElement.scrollWidth > innerWidth").await;
        assert!(!overflow, "{state} does not fit into {width} pixels");
    }
    tab.resize(1280, 860).await;
    tab.prefer_dark(false).await;
}

#[test]
fn axe_finds_nothing_in_any_view() {
    on_the_stack("axe_finds_nothing_in_any_view", async |stack, chromium| {
        let axe = axe().await;
        let schema = json!({ "properties": { "age": { "type": "integer" } } });
        let text = "name,age\nAda,36\nBob,old\nEve,x\n".to_owned();
        let job = job_over(stack, text, "three.csv", "validate", json!({ "schema": schema })).await;
        let tab = chromium.tab(&job_page(stack, &job)).await;
        tab.until("document.querySelectorAll('failed-rows tbody tr').length === 2").await;
        tab.until("document.querySelectorAll('job-files li').length === 2").await;
        tab.press("Dead letters").await;
        tab.sees("No queue gave up on a message of this job.").await;
        finds_nothing(&tab, &axe, "the job").await;
        tab.press("Correct rows").await;
        finds_nothing(&tab, &axe, "the corrections").await;

        let tab = chromium.tab(&page(stack)).await;
        tab.until("document.querySelector('job-list .name')").await;
        finds_nothing(&tab, &axe, "the list").await;
        tab.press("New job").await;
        tab.choose_files(&[&data("unicode.csv")]).await;
        tab.sees("uploaded, 100%").await;
        tab.until("document.querySelector('file-preview').checkVisibility()").await;
        finds_nothing(&tab, &axe, "the new job").await;
        tab.picture("new-job.png").await;
        for kind in ["transform", "export"] {
            tab.choose("Type", kind).await;
            finds_nothing(&tab, &axe, kind).await;
        }
    });
}

#[test]
fn the_keyboard_reaches_everything_and_the_focus_goes_with_the_view() {
    on_the_stack("the_keyboard_reaches_everything_and_the_focus_goes_with_the_view", async |stack, chromium| {
        let tab = chromium.tab(&page(stack)).await;
        tab.until("document.querySelector('job-list')").await;
        let _: Value = tab.value("document.querySelector('.skip-link').focus(), null").await;
        let focused = "(document.activeElement.textContent || document.activeElement.tagName)";
        let mut reached = Vec::new();
        for _ in 0..6 {
            tab.key("Tab").await;
            reached.push(tab.value::<String>(focused).await);
        }
        assert_eq!(reached[..3], ["Rowmill", "Jobs", "New job"], "{reached:?}");
        let _: Value = tab.value("document.querySelectorAll('nav a')[1].focus(), null").await;
        tab.key("Enter").await;
        tab.until("document.activeElement.tagName === 'H1' && document.activeElement.textContent === 'New job'").await;
    });
}

#[test]
fn nothing_on_the_page_moves_while_counts_run() {
    on_the_stack("nothing_on_the_page_moves_while_counts_run", async |stack, chromium| {
        let text = "id,name\n".to_owned() + &(0..30_000).map(|id| format!("{id},name {id}\n")).collect::<String>();
        let file = stack.upload("text/csv", text).await;
        let job = stack.create_from(&long_job(&file, "moves")).await;
        let tab = chromium.tab(&job_page(stack, &job)).await;
        tab.job_is("running").await;
        let _: Value = tab.value(WATCH_SHIFTS).await;
        tab.until("Number(document.querySelector('job-page [role=progressbar]').getAttribute('aria-valuenow')) > 90")
            .await;
        let shifts: Vec<Value> = tab.value(SHIFTS).await;
        assert!(shifts.is_empty(), "{shifts:?}");
    });
}
