//! Uploads and new jobs.

use std::io::Write as _;

use serde_json::Value;

use crate::browser::Tab;
use crate::stack::{data, folder, on_the_stack, page};

/// Notes every value of the job's bar, which the page keeps for the tests to read.
const WATCH: &str = "window.percents = [], new MutationObserver(() => { const bar = document.querySelector('job-page [role=progressbar]'); \
                     if (bar) window.percents.push(Number(bar.getAttribute('aria-valuenow'))); })\
                     .observe(document.body, {subtree: true, childList: true, attributes: true}), null";

#[test]
fn a_file_is_uploaded_on_the_page_and_its_job_is_followed_to_the_end() {
    on_the_stack("a_file_is_uploaded_on_the_page_and_its_job_is_followed_to_the_end", async |stack, chromium| {
        let tab = chromium.tab(&page(stack)).await;
        tab.press("New job").await;
        tab.choose_files(&[&data("unicode.csv")]).await;
        tab.write("Dataset", "on-the-page").await;
        tab.write("Key", "codepoint").await;
        tab.sees("uploaded, 100%").await;
        let _: Value = tab.value(WATCH).await;
        tab.press("Start job").await;
        tab.until("document.querySelector('job-page state-badge')?.textContent === 'completed'").await;
        assert_eq!(figures(&tab).await, ["11,231 of 11,231", "11,231", "0", "0"]);
        let percents: Vec<u8> = tab.value("window.percents").await;
        assert!(percents.is_sorted() && percents.last() == Some(&100), "{percents:?}");
        assert_eq!(tab.value::<String>("document.querySelector('h1').textContent").await, "unicode.csv");
        assert_eq!(stack.records("on-the-page").await.len(), 11_231);

        // The list knows it too, and finds it by its state and type.
        tab.press("Jobs").await;
        tab.choose("Type", "import").await;
        tab.choose("Status", "completed").await;
        tab.until("[...document.querySelectorAll('job-list .name')].some(one => one.textContent === 'unicode.csv')")
            .await;
        tab.choose("Status", "waiting").await;
        tab.sees("No job is like this.").await;
    });
}

/// Items, succeeded, failed and skipped.
pub async fn figures(tab: &Tab) -> Vec<String> {
    tab.value("[...document.querySelectorAll('.figures dd')].slice(0, 4).map(one => one.textContent)").await
}

#[test]
fn a_field_that_is_wrong_is_told_and_nothing_is_started() {
    on_the_stack("a_field_that_is_wrong_is_told_and_nothing_is_started", async |stack, chromium| {
        let tab = chromium.tab(&format!("{}#/new", page(stack))).await;
        tab.choose_files(&[&data("unicode.csv")]).await;
        tab.sees("uploaded, 100%").await;
        tab.press("Start job").await;
        tab.sees("Dataset: ").await;
        tab.write("Dataset", "d").await;
        tab.write("Key", "no-such-column").await;
        tab.press("Start job").await;
        // The API names the field.
        tab.until("document.querySelector('new-job form [role=alert]')?.textContent.includes('no-such-column')").await;
        tab.choose("Type", "validate").await;
        tab.write("Schema", "{").await;
        tab.press("Start job").await;
        tab.sees("Schema is not JSON").await;
    });
}

#[test]
fn a_big_file_goes_in_parts_and_goes_on_after_a_pause() {
    on_the_stack("a_big_file_goes_in_parts_and_goes_on_after_a_pause", async |stack, chromium| {
        std::fs::create_dir_all(folder()).expect("a folder");
        let path = folder().join("big.csv");
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path).expect("a file"));
        writeln!(file, "id,text").expect("a disk");
        let text = "x".repeat(1000);
        for id in 0..70_000 {
            writeln!(file, "{id},{text}").expect("a disk");
        }
        drop(file);
        let tab = chromium.tab(&format!("{}#/new", page(stack))).await;
        // So that there is time to pause.
        tab.slow(10e6).await;
        tab.choose_files(&[&path]).await;
        tab.until("Number(document.querySelector('.file [role=progressbar]')?.getAttribute('aria-valuenow')) > 10")
            .await;
        tab.press("Pause").await;
        tab.sees("paused, ").await;
        let at_pause: u8 =
            tab.value("Number(document.querySelector('.file [role=progressbar]').getAttribute('aria-valuenow'))").await;
        assert!(at_pause < 100);
        tab.slow(-1.0).await;
        tab.press("Resume").await;
        tab.sees("uploaded, 100%").await;
        tab.choose("Type", "validate").await;
        tab.press("Start job").await;
        tab.until("document.querySelector('job-page state-badge')?.textContent === 'completed'").await;
        assert_eq!(figures(&tab).await[0], "70,000 of 70,000");
        std::fs::remove_file(path).expect("a file");
    });
}
